package tuner

import (
	"cmp"
	"runtime/debug"
	"strings"
	"sync"
)

// Version is the name and version of this tool, as records have it: "tilewright
// v1.2.3", or "tilewright v0.0.0-20261122180400-8a5548512345" of a build from a
// repository. It is "tilewright (devel)" where the build says nothing, as in tests.
var Version = sync.OnceValue(func() string {
	return "tilewright " + versionOf(debug.ReadBuildInfo())
})

// modulePath is the path of the module that this package is part of.
const modulePath = "github.com/tilewright/tilewright"

// versionOf is the version of this module, which is the main one of a build or one
// that it depends on.
func versionOf(info *debug.BuildInfo, ok bool) string {
	const unknown = "(devel)"
	if !ok {
		return unknown
	}
	if info.Main.Path == modulePath && info.Main.Version != unknown {
		return cmp.Or(info.Main.Version, unknown)
	}
	if info.Main.Path == modulePath {
		return stampOf(info)
	}
	for _, d := range info.Deps {
		if d.Path == modulePath {
			return cmp.Or(d.Version, unknown)
		}
	}
	return unknown
}

// stampOf is the revision of the repository that a build was made from.
func stampOf(info *debug.BuildInfo) string {
	revision, modified := "(devel)", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = strings.Clone(s.Value)
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "+dirty"
		}
	}
	return revision + modified
}
