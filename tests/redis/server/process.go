package server

import (
	"errors"
	"os/exec"
	"syscall"
)

// runner runs one server again and again, with the same files.
type runner interface {
	start(args []string) error
	signal(what syscall.Signal) error
	await() error // its end
}

// process is a server of this machine.
type process struct{ cmd *exec.Cmd }

func (p *process) start(args []string) error {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return errors.New("redis-server is missing: run tests/prepare, or install the package redis-server")
	}
	p.cmd = exec.Command(path, args...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return p.cmd.Start()
}

func (p *process) signal(what syscall.Signal) error { return p.cmd.Process.Signal(what) }

func (p *process) await() error {
	_ = p.cmd.Wait() // it says by its status that it was told to end
	return nil
}
