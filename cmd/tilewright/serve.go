package main

import (
	"context"
	"errors"

	"github.com/tilewright/tilewright/query"
	"github.com/tilewright/tilewright/serve"
)

// serveCommand answers requests of other programs.
var serveCommand = command{
	name: "serve", short: "answer other programs: lines of JSON on a socket or the standard streams",
	long: `Answers requests, one a line of JSON, with responses of the same id, in the order in which they are done:
which plan for a fusion, a module or a fingerprint; tiles and constraints; partition. docs/formats.md
describes the protocol; -schema prints its JSON schema.

  tilewright serve -stdio -db winners.snapshot         one client, on the standard streams
  tilewright serve -socket /run/user/1000/tilewright   any number of clients, on a Unix socket

-db is a database, of which an answer is remembered until anybody stores something, or a published snapshot,
which is mapped, as it was at the start. For the first fusion without a winner after something was stored, all
records of a database are read, which takes half a second of 50,000; a snapshot has an index. Nothing is measured or written. A line has at most 64 MiB. The socket is open
to this user only; it replaces one that nobody answers on, and is removed at the end.`,
	run: runServe,
}

// runServe serves until the input ends (-stdio), or a signal ends the process (-socket):
// then the socket is removed, and the status is 0, since that is how a server ends. With
// -timeout it ends by itself, with the status of that.
func runServe(c *call) error {
	db := c.dbFlag()
	device := c.deviceFlag()
	socket := c.String("socket", "", "listen on this Unix `socket`")
	stdio := c.Bool("stdio", false, "answer the standard input on the standard output")
	schema := c.Bool("schema", false, "print the JSON schema of the protocol and end")
	if _, err := c.parse(0, 0); err != nil {
		return err
	}
	switch {
	case *schema:
		return c.printJSON(serve.Schema())
	case (*socket != "") == *stdio:
		return usagef("choose one of -socket and -stdio")
	}
	// the identity of the device and its default plans; nothing is measured
	b, err := backend(device)
	if err != nil {
		return err
	}
	store, err := query.Open(*db, query.DeviceOf(b))
	if err != nil {
		return err
	}
	defer store.Close()
	server := serve.Server{Store: store}
	if *stdio {
		return server.Stream(c.ctx, c.in, c.out)
	}
	ctx, stop := c.catchSignals()
	defer stop()
	err = server.Listen(ctx, *socket)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
