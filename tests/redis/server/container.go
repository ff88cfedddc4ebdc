package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// image is what a server in a container is made of.
const image = "redis:7-alpine"

// dock is a server in a container of the Docker engine of this machine. It has the
// machine's network and its temporary files, so that for whoever uses it nothing differs
// from a process: addresses, which servers tell each other, hold.
type dock struct {
	container *testcontainers.DockerContainer // nil: not made yet
	engine    *testcontainers.DockerProvider
}

// quiet passes over what the library says of each container.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// slowly bounds each thing that is asked of the engine.
func slowly() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Minute)
}

func (d *dock) start(args []string) error {
	ctx, cancel := slowly()
	defer cancel()
	if d.container != nil {
		return d.container.Start(ctx)
	}
	c, err := testcontainers.Run(ctx, image, testcontainers.WithLogger(quiet{}),
		testcontainers.WithEntrypoint("redis-server"), testcontainers.WithCmd(args...),
		testcontainers.WithHostConfigModifier(func(host *container.HostConfig) {
			host.NetworkMode = "host"
			host.Binds = []string{os.TempDir() + ":" + os.TempDir()}
		}))
	if err != nil {
		return fmt.Errorf("PULSE_TEST_REDIS=container: no server in a container of %s: is there a Docker engine on this machine, and the image? %w", image, err)
	}
	d.container = c
	d.engine, err = testcontainers.NewDockerProvider(testcontainers.WithLogger(quiet{}))
	return err
}

func (d *dock) signal(what syscall.Signal) error {
	ctx, cancel := slowly()
	defer cancel()
	_, err := d.engine.Client().ContainerKill(ctx, d.container.GetContainerID(), client.ContainerKillOptions{Signal: strconv.Itoa(int(what))})
	return err
}

func (d *dock) await() error {
	ctx, cancel := slowly()
	defer cancel()
	w := d.engine.Client().ContainerWait(ctx, d.container.GetContainerID(), client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	select {
	case <-w.Result:
		return nil
	case err := <-w.Error:
		return err
	}
}

// remove ends it, and what is left of it.
func (d *dock) remove() error {
	if d.container == nil {
		return nil
	}
	ctx, cancel := slowly()
	defer cancel()
	return errors.Join(d.container.Terminate(ctx, testcontainers.StopTimeout(0)), d.engine.Close())
}
