package reference

import (
	"errors"
	"reflect"
	"strings"
	"time"

	"karui/internal/config"
)

// validate judges the example.
func (w *walk) validate() error {
	v, ok := reflect.ValueOf(w.root).Elem().Interface().(interface{ Validate(key string) error })
	if !ok {
		return errors.New("it has no method Validate(key string) error")
	}
	return v.Validate("")
}

// allowed gives values to a key until one is refused, and returns what would have
// been allowed; "" where none is.
func (w *walk) allowed(key string, v reflect.Value) string {
	before := reflect.New(v.Type()).Elem()
	before.Set(v)
	defer v.Set(before)
	for _, wrong := range wrongs(v.Type()) {
		v.Set(wrong)
		for _, p := range config.Problems(w.validate()) {
			if (p.Key == key || p.Key == key+"[0]") && p.Want != "" && !strings.HasPrefix(p.Want, "left out") {
				want, _, _ := strings.Cut(p.Want, " (it is ")
				return want
			}
		}
	}
	return ""
}

// wrongs are values of a type that hardly any key takes.
func wrongs(t reflect.Type) []reflect.Value {
	of := func(values ...any) []reflect.Value {
		var all []reflect.Value
		for _, v := range values {
			all = append(all, reflect.ValueOf(v).Convert(t))
		}
		return all
	}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return of(-time.Hour, 100000*time.Hour)
	case t.Kind() == reflect.String:
		return of("\x01 ?", "", strings.Repeat("x", 1<<16))
	case t.Kind() == reflect.Bool:
		return nil
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		return of(int64(-1), int64(1)<<62)
	case t.Kind() == reflect.Float64:
		return of(-1.0, 1e12)
	case t.Kind() == reflect.Slice:
		all := []reflect.Value{reflect.Zero(t)}
		if t.Elem().Kind() != reflect.Struct {
			for _, wrong := range wrongs(t.Elem()) {
				all = append(all, reflect.Append(reflect.Zero(t), wrong))
			}
		}
		return all
	}
	return nil
}
