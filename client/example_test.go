package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/codec"
)

// A program that follows a room, through every lost connection.
func Example() {
	c, err := client.New(client.Options{
		URL:   "wss://pulse.example.com",
		Token: func(ctx context.Context) (string, error) { return freshToken(ctx) },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	ctx := context.Background()
	room, err := c.Join(ctx, client.Join{Room: "chat:lobby"})
	if err != nil {
		log.Fatal(err)
	}
	for {
		item, err := room.Next(ctx)
		if err != nil {
			log.Fatal(err) // left, or closed for good
		}
		switch item := item.(type) {
		case *client.Event:
			fmt.Println(item.From, item.Name, item.Data)
		case *client.Reset:
			fmt.Println("begin anew with", item.Data)
		case *client.Gap:
			fmt.Println("too slow; missed", item.Missed)
		}
	}
}

// Publishing is done once, though the connection is lost: what an error leaves open
// is said.
func ExampleClient_Publish() {
	c, err := client.New(client.Options{URL: "wss://pulse.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	p := client.Publish{Room: "orders", Event: "placed", Data: map[string]int{"order": 7}, DedupKey: "order-7"}
	result, err := c.Publish(ctx, p)
	var refusal *client.Error
	switch {
	case err == nil:
		fmt.Println("published at", result.Position)
	case errors.As(err, &refusal) && refusal.Code.Retryable():
		fmt.Println("try again in", refusal.RetryAfter)
	case errors.Is(err, client.ErrUnknown):
		fmt.Println("perhaps published; the same DedupKey makes it harmless to try again")
	default:
		fmt.Println("not published:", err)
	}
}

// A consumer that keeps its position goes on where it was in its next life.
func ExampleSubscription_Position() {
	c, err := client.New(client.Options{URL: "wss://pulse.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	ctx := context.Background()
	room, err := c.Join(ctx, client.Join{Room: "orders", Position: loadPosition()})
	if err != nil {
		log.Fatal(err)
	}
	for {
		item, err := room.Next(ctx)
		if err != nil {
			return
		}
		process(item)
		storePosition(room.Position())
	}
}

func freshToken(context.Context) (string, error) { return "", nil }
func loadPosition() codec.Position               { return codec.Position{} }
func storePosition(codec.Position)               {}
func process(client.Item)                        {}
