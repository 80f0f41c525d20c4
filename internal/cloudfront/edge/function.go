package edge

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dop251/goja"

	"karui/internal/cloudfront"
)

// functions runs CloudFront Functions, compiled once each.
type functions struct {
	limit time.Duration

	mu       sync.Mutex
	programs map[string]*goja.Program // by source
}

// maxPrograms bounds the compiled functions; CloudFront allows 100 an account.
const maxPrograms = 100

// maxDepth bounds the calls inside one another.
const maxDepth = 256

func newFunctions(limit time.Duration) *functions {
	return &functions{limit: limit, programs: make(map[string]*goja.Program)}
}

func (f *functions) program(code string) (*goja.Program, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.programs[code]; p != nil {
		return p, nil
	}
	// Documented: functions are strict.
	p, err := goja.Compile("function.js", code, true)
	if err != nil {
		return nil, fmt.Errorf("compile function: %w", err)
	}
	if len(f.programs) >= maxPrograms {
		clear(f.programs)
	}
	f.programs[code] = p
	return p, nil
}

// run calls handler(event) in a world of its own and gives back what it returned.
// Its time is bounded; its memory only by what it gets to work on.
func (f *functions) run(code string, event map[string]any) (map[string]any, error) {
	p, err := f.program(code)
	if err != nil {
		return nil, err
	}
	vm := goja.New()
	vm.SetMaxCallStackSize(maxDepth)
	timer := time.AfterFunc(f.limit, func() { vm.Interrupt("the function took too long") })
	defer timer.Stop()
	if _, err := vm.RunProgram(p); err != nil {
		return nil, fmt.Errorf("run function: %w", err)
	}
	handler, ok := goja.AssertFunction(vm.Get("handler"))
	if !ok {
		return nil, errors.New("the function has no handler(event)")
	}
	result, err := handler(goja.Undefined(), plain(vm, event))
	if err != nil {
		return nil, fmt.Errorf("run function: %w", err)
	}
	out, ok := result.Export().(map[string]any)
	if !ok {
		return nil, errors.New("the function returned no object")
	}
	return out, nil
}

// plain makes real objects and arrays, so that code can add to them and ask them
// what objects can.
func plain(vm *goja.Runtime, value any) goja.Value {
	switch x := value.(type) {
	case map[string]any:
		o := vm.NewObject()
		for name, v := range x {
			_ = o.Set(name, plain(vm, v)) // a plain object takes everything
		}
		return o
	case []any:
		items := make([]any, len(x))
		for i, v := range x {
			items[i] = plain(vm, v)
		}
		return vm.NewArray(items...)
	}
	return vm.ToValue(value)
}

// RunFunction calls a function as an edge would, for tests of its code alone.
// request is the request object of the event.
func RunFunction(f cloudfront.Function, request map[string]any, limit time.Duration) (map[string]any, error) {
	return newFunctions(limit).run(f.Code, map[string]any{
		"version": "1.0", "context": map[string]any{"eventType": "viewer-request"}, "request": request,
	})
}
