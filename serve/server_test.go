package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/query"
	"github.com/tilewright/tilewright/serve"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/tuner"
)

var rewrite = flag.Bool("rewrite", false, "rewrite golden files")

const corpus = "../testdata/hlo/"

// text reads a program of the corpus.
func text(t testing.TB, name string) string {
	src, err := os.ReadFile(corpus + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}

// published is a store of a snapshot with a winner for each fusion of a text.
func published(t testing.TB, src string) *query.Store {
	m, err := hlo.Parse("text", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	device := query.DeviceOf(cpu.New())
	db := cache.Open(filepath.Join(t.TempDir(), "t.db"))
	for k, c := range m.Fusions() {
		_, err := db.Put(cache.Record{
			Key:       tuner.Key(c, device.Identity),
			Name:      c.Name,
			Canonical: c.Canonical(),
			Plan:      fmt.Sprintf("%d,2", k+1),
			Seconds:   1e-6,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "snap")
	if _, err := db.Publish(path); err != nil {
		t.Fatal(err)
	}
	s, err := query.Open(path, device)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// line is a request as a line.
func line(t testing.TB, r serve.Request) string {
	b, err := serve.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// requests has one or more of every operation, by id.
func requests(t testing.TB) map[string]serve.Request {
	module, row := text(t, "mlp_block.hlo"), text(t, "row_reduce.hlo")
	return map[string]serve.Request{
		"all":      {Op: "lookup", Text: module},
		"one":      {Op: "lookup", Text: module, Fusion: "fused_rmsnorm", Require: "exact"},
		"missed":   {Op: "lookup", Text: row},
		"none":     {Op: "lookup", Text: row, Require: "exact"},
		"get":      {Op: "get", Fingerprint: strings.Repeat("0a", 32)},
		"plan":     {Op: "plan", Text: row},
		"print":    {Op: "fingerprint", Text: module},
		"split":    {Op: "partition", Text: row},
		"tiles":    {Op: "tiles", Text: row},
		"numbers":  {Op: "tiles", Text: row, Sizes: []int64{64, 768}, Tile: []int64{1}},
		"open":     {Op: "tiles", Text: open, Shape: hlo.Extents{"?": {64}}, Sizes: []int64{8, 128}},
		"version":  {Op: "version"},
		"tooMany":  {Op: "tiles", Text: row, Tile: []int64{1}},
		"noFusion": {Op: "plan", Text: row, Fusion: "none"},
		"noText":   {Op: "lookup"},
		"badText":  {Op: "tiles", Text: "HloModule"},
	}
}

// open is a text that leaves an extent open.
const open = `func.func @main(%arg0: tensor<?x128xf32>, %b: tensor<128xf32>) -> tensor<?x128xf32> {
  %0 = stablehlo.exponential %arg0 : tensor<?x128xf32>
  %1 = stablehlo.add %0, %arg0 : tensor<?x128xf32>
  return %1 : tensor<?x128xf32>
}`

// TestShape: extents that a text leaves open are given by a request; the fusions are those
// of the text with the extents in it. What is no such extent is refused.
func TestShape(t *testing.T) {
	s := published(t, text(t, "mlp_block.hlo"))
	for _, op := range []string{"lookup", "plan", "fingerprint", "partition", "tiles"} {
		want := serve.Answer(t.Context(), s, serve.Request{Op: op, Text: strings.ReplaceAll(open, "?", "64")})
		for _, shape := range []hlo.Extents{{"arg0": {64, 128}}, {"?": {64}}} {
			got := serve.Answer(t.Context(), s, serve.Request{Op: op, Text: open, Shape: shape})
			if got.Error != nil || want.Error != nil {
				t.Fatal(op, got.Error, want.Error)
			}
			x, _ := json.Marshal(got.Result)
			y, _ := json.Marshal(want.Result)
			if !bytes.Equal(x, y) {
				t.Errorf("%s of %v:\n%s\nwant\n%s", op, shape, x, y)
			}
		}
	}
	for message, shape := range map[string]hlo.Extents{
		`no parameter "x" with an open extent; it has ["arg0"]`: {"x": {64, 128}},
		`no parameter "b"`:  {"b": {128}, "arg0": {64, 128}},
		"are no extents of": {"arg0": {-1, 128}},
		"[1 2]":             {"?": {1, 2}},
		`shape {"arg0": [64, 127]}: f32[?,128] has`: {"arg0": {64, 127}},
	} {
		r := serve.Answer(t.Context(), s, serve.Request{Op: "fingerprint", Text: open, Shape: shape})
		if r.Error == nil || r.Error.Kind != "input" || !strings.Contains(r.Error.Message, message) {
			t.Errorf("%v: %v, want %q", shape, r.Error, message)
		}
	}
	// What is left open is asked for as the field takes it, and not as the flag.
	for op, want := range map[string]string{
		"tiles": `give it with shape {\"arg0\": [8, 128]}`, "lookup": `give it with shape {\"arg0\": [8, 128]}`, "plan": `shape {\"arg0\"`,
		"partition": "",
	} {
		got, _ := json.Marshal(serve.Answer(t.Context(), s, serve.Request{Op: op, Text: open}))
		if text := string(got); !strings.Contains(text, want) || strings.Contains(text, "-shape") {
			t.Errorf("%s: %s, want %s", op, got, want)
		}
	}
	r := serve.Answer(t.Context(), s, serve.Request{Op: "version", Shape: hlo.Extents{}})
	if r.Error == nil || r.Error.Kind != "request" {
		t.Errorf("version with a shape: %v", r.Error)
	}
}

// TestSchema compares the schema with the one that is committed, and every response of
// the operations with the schema.
func TestSchema(t *testing.T) {
	got, err := json.MarshalIndent(serve.Schema(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	const golden = "testdata/schema.json"
	if *rewrite {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the structs say; -rewrite writes it (%v)", golden, err)
	}
	var schema map[string]any
	if err := json.Unmarshal(got, &schema); err != nil {
		t.Fatal(err)
	}
	v := validator{schema["$defs"].(map[string]any)}
	store := published(t, text(t, "mlp_block.hlo"))
	for id, r := range requests(t) {
		resp := serve.Answer(t.Context(), store, r)
		var doc map[string]any
		if err := json.Unmarshal([]byte(lineOf(t, resp)), &doc); err != nil {
			t.Fatal(err)
		}
		v.check(t, id, doc, map[string]any{"$ref": "#/$defs/Response"})
		if resp.Error == nil {
			op := schema["operations"].(map[string]any)[r.Op].(map[string]any)
			v.check(t, id, doc["result"], op["result"].(map[string]any))
		}
	}
}

// lineOf is a response as a line.
func lineOf(t testing.TB, r serve.Response) string {
	b, err := serve.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A validator checks documents against the part of JSON schema that Schema uses.
type validator struct{ defs map[string]any }

// check reports what of a value is not as the schema says.
func (v validator) check(t *testing.T, at string, value any, schema map[string]any) {
	if ref, ok := schema["$ref"].(string); ok {
		schema = v.defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	if either, ok := schema["anyOf"].([]any); ok && value != nil {
		schema = either[0].(map[string]any)
		v.check(t, at, value, schema)
		return
	}
	switch x := value.(type) {
	case map[string]any:
		v.object(t, at, x, schema)
	case []any:
		for k, e := range x {
			v.check(t, fmt.Sprintf("%s[%d]", at, k), e, schema["items"].(map[string]any))
		}
	case string:
		if schema["type"] != nil && !strings.Contains(fmt.Sprint(schema["type"]), "string") {
			t.Errorf("%s: a string, not %v", at, schema["type"])
		}
	case float64:
		if schema["type"] == "string" || schema["type"] == "integer" && x != float64(int64(x)) {
			t.Errorf("%s: %v is no %v", at, x, schema["type"])
		}
	}
}

// object checks the properties of an object.
func (v validator) object(t *testing.T, at string, x, schema map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	if additional, ok := schema["additionalProperties"].(map[string]any); ok {
		for name, e := range x {
			v.check(t, at+"."+name, e, additional)
		}
		return
	}
	if properties == nil {
		return // any value
	}
	for name, e := range x {
		p, ok := properties[name].(map[string]any)
		if !ok {
			t.Errorf("%s.%s is not in the schema", at, name)
			continue
		}
		v.check(t, at+"."+name, e, p)
	}
	for _, name := range schema["required"].([]any) {
		if _, ok := x[name.(string)]; !ok {
			t.Errorf("%s.%s is required", at, name)
		}
	}
}

// TestAnswers says what each request is answered.
func TestAnswers(t *testing.T) {
	store := published(t, text(t, "mlp_block.hlo"))
	want := map[string]string{
		"all":      `"answer":"exact","fusion":"fused_rmsnorm"`,
		"one":      `"plan":"1,2"`,
		"missed":   `"answer":"predicted"`,
		"none":     `"answer":"none"`,
		"get":      `"answer":"none"`,
		"plan":     `"predicted":true`,
		"print":    `"name":"fused_rmsnorm"`,
		"split":    `"distinct":1`,
		"tiles":    `"offset":["t0 * s0","t1 * s1"]`,
		"numbers":  `"offset":[64,0]`,
		"version":  `"protocol":1`,
		"tooMany":  `"message":"tile needs sizes"`,
		"noFusion": `there is no fusion \"none\"`,
		"noText":   `lookup needs the field \"text\"`,
		"badText":  `"kind":"input"`,
	}
	for id, r := range requests(t) {
		if got := lineOf(t, serve.Answer(t.Context(), store, r)); !strings.Contains(got, want[id]) {
			t.Errorf("%s: %s has no %s", id, got, want[id])
		}
	}
	store.Close()
	if got := serve.Answer(t.Context(), store, requests(t)["get"]); got.Error == nil || got.Error.Kind != "store" {
		t.Errorf("a closed store answers %+v", got)
	}
}

// TestManyInFlight asks from several clients at once; every request is answered once,
// with its own id and its own result.
func TestManyInFlight(t *testing.T) {
	server := serve.Server{Store: published(t, text(t, "mlp_block.hlo"))}
	socket := filepath.Join(t.TempDir(), "s")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- server.Listen(ctx, socket) }()
	kinds := requests(t)
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() { ask(t, socket, kinds, 300) })
	}
	clients.Wait()
	if err := server.Listen(ctx, socket); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("a second server on the socket: %v", err)
	}
	cancel()
	if err := <-done; err != context.Canceled {
		t.Error(err)
	}
	if _, err := os.Stat(socket); err == nil {
		t.Error("the socket is left behind")
	}
}

// ask sends n requests without waiting and reads their responses.
func ask(t *testing.T, socket string, kinds map[string]serve.Request, n int) {
	var c net.Conn
	var err error
	for range 100 { // until the server listens
		if c, err = net.Dial("unix", socket); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	want := map[string]string{}
	go func() {
		for k := range n {
			for _, id := range []string{"get", "print", "version", "noText"} {
				r := kinds[id]
				r.ID = json.RawMessage(fmt.Sprintf("%q", fmt.Sprint(id, k)))
				io.WriteString(c, line(t, r))
			}
		}
		c.(*net.UnixConn).CloseWrite()
	}()
	in := bufio.NewScanner(c)
	for in.Scan() {
		var resp struct {
			ID     string
			Result map[string]any
			Error  *serve.Error
		}
		if err := json.Unmarshal(in.Bytes(), &resp); err != nil {
			t.Error(err)
			return
		}
		if want[resp.ID] != "" {
			t.Errorf("%s is answered twice", resp.ID)
		}
		want[resp.ID] = in.Text()
		if (resp.Error != nil) != strings.HasPrefix(resp.ID, "noText") ||
			strings.HasPrefix(resp.ID, "get") && resp.Result["answer"] != "none" ||
			strings.HasPrefix(resp.ID, "version") && resp.Result["protocol"] == nil {
			t.Errorf("%s", in.Text())
		}
	}
	if len(want) != 4*n {
		t.Errorf("%d answers of %d", len(want), 4*n)
	}
}

// FuzzStream feeds bytes to a server: every line that is not empty has one response,
// which is JSON.
func FuzzStream(f *testing.F) {
	for _, r := range requests(f) {
		f.Add(line(f, r))
	}
	f.Add("{\n[]\n\n \n{\"id\":{},\"op\":1}\n{\"id\":1e999}x\x00")
	store := published(f, text(f, "row_reduce.hlo"))
	f.Fuzz(func(t *testing.T, in string) {
		var out bytes.Buffer
		server := serve.Server{Store: store}
		if err := server.Stream(t.Context(), strings.NewReader(in), &out); err != nil {
			t.Fatal(err)
		}
		asked := 0
		for l := range strings.Lines(in) {
			if strings.TrimSpace(l) != "" {
				asked++
			}
		}
		answered := 0
		for l := range bytes.Lines(out.Bytes()) {
			if !json.Valid(l) {
				t.Errorf("%q", l)
			}
			answered++
		}
		if asked != answered {
			t.Errorf("%d responses to %d lines", answered, asked)
		}
	})
}

// BenchmarkHit is the time of one request over a Unix socket, by fingerprint and by
// text that was seen before, with the round trip of an echo and the time without a
// socket beside it.
func BenchmarkHit(b *testing.B) {
	src := text(b, "softmax.hlo")
	store := published(b, src)
	prints, err := store.Prints(context.Background(), src)
	if err != nil {
		b.Fatal(err)
	}
	server := serve.Server{Store: store}
	for name, r := range map[string]serve.Request{
		"fingerprint": {Op: "get", Fingerprint: prints[0].Fingerprint},
		"text":        {Op: "lookup", Text: src},
	} {
		b.Run(name, func(b *testing.B) {
			roundTrips(b, line(b, r), func(c net.Conn) { server.Stream(b.Context(), c, c) })
		})
		b.Run(name+"/alone", func(b *testing.B) {
			text := []byte(line(b, r))
			for b.Loop() {
				r, err := serve.Parse(text)
				if err == nil {
					_, err = serve.Encode(serve.Answer(context.Background(), store, r))
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("echo", func(b *testing.B) {
		roundTrips(b, "0123456789\n", func(c net.Conn) { io.Copy(c, c) })
	})
}

// roundTrips sends a line and waits for one, on a Unix socket.
func roundTrips(b *testing.B, ask string, peer func(net.Conn)) {
	l, err := net.Listen("unix", filepath.Join(b.TempDir(), "s"))
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err == nil {
			peer(c)
		}
	}()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	for b.Loop() {
		io.WriteString(c, ask)
		if _, err := in.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
}
