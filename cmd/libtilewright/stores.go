//go:build cgo

package main

import (
	"sync"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/query"
)

// stores are what a host has opened, by handle. Handles count from 1 and are not used
// again, so that a closed one is found to be none.
type stores struct {
	mu   sync.RWMutex
	last uint64
	open map[uint64]*query.Store
}

// add gives a store a handle.
func (s *stores) add(x *query.Store) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[uint64]*query.Store{}
	}
	s.last++
	s.open[s.last] = x
	return s.last
}

// find is the store of a handle; nil if that is not open.
func (s *stores) find(db uint64) *query.Store {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.open[db]
}

// remove takes the handle of a store away and returns the store.
func (s *stores) remove(db uint64) *query.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.open[db]
	delete(s.open, db)
	return x
}

// deviceNamed is the device of tilewright_open: "cpu", or an identity as JSON. No kernel runs
// in a host.
func deviceNamed(name string) (query.Device, error) {
	if name == "cpu" {
		cpu.PriceOnly()
		return query.DeviceOf(cpu.New()), nil
	}
	id, err := kernels.ParseIdentity([]byte(name))
	return query.Device{Identity: id}, err
}
