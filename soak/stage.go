package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// stage gives servers and nodes what a test would: a folder, an end, a way to give up.
type stage struct {
	dir   string
	log   *os.File
	ends  []func()
	clean bool // nothing is to be kept
}

// gaveUp is what Fatal panics with.
type gaveUp struct{ error }

// perform runs f on a stage, and ends what f began.
func perform(f func(*stage)) (err error) {
	s := &stage{}
	if s.dir, err = os.MkdirTemp("", "pulse-soak"); err != nil {
		return err
	}
	if s.log, err = os.Create(filepath.Join(s.dir, "nodes.log")); err != nil {
		return err
	}
	defer func() {
		for _, end := range slices.Backward(s.ends) {
			end()
		}
		err = errors.Join(err, s.log.Close())
		if s.clean {
			err = errors.Join(err, os.RemoveAll(s.dir))
		} else {
			err = errors.Join(err, fmt.Errorf("logs are in %s", s.dir))
		}
	}()
	defer func() {
		if reason := recover(); reason != nil {
			up, is := reason.(gaveUp)
			if !is {
				panic(reason)
			}
			err = up.error
		}
	}()
	f(s)
	return nil
}

func (s *stage) Helper()                         {}
func (s *stage) Fatal(args ...any)               { panic(gaveUp{errors.New(fmt.Sprint(args...))}) }
func (s *stage) Fatalf(text string, args ...any) { panic(gaveUp{fmt.Errorf(text, args...)}) }
func (s *stage) Cleanup(f func())                { s.ends = append(s.ends, f) }
func (s *stage) Output() io.Writer               { return s.log }

func (s *stage) TempDir() string {
	dir, err := os.MkdirTemp(s.dir, "")
	if err != nil {
		s.Fatal(err)
	}
	return dir
}
