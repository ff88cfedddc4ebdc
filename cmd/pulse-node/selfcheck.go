package main

import (
	"context"
	"fmt"
	"time"

	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/cmd/pulse-node/internal/config"
)

// selfCheck tries, with nobody else, what is configured and would else be found broken
// by the first client: that tokens of our own keys open the node, and that a resume
// token which any of the deployment keys has sealed is opened. What takes others is told
// by /readyz.
func selfCheck(ctx context.Context, c *config.Config, jwt *auth.JWT) error {
	var faults config.Faults
	for i, k := range c.Auth.JWT.Keys {
		if !k.Key.CanSign() {
			continue
		}
		if err := tryKey(ctx, c, jwt, k.Key); err != nil {
			faults = append(faults, config.Fault{Key: fmt.Sprintf("auth.jwt.keys[%d]", i), Source: "self-check",
				Problem: fmt.Sprintf("a token that it signs must be taken, and is not: %v", err)})
		}
	}
	if len(c.DeploymentKeys) > 0 {
		if err := unseals(c.DeploymentKeys); err != nil {
			faults = append(faults, config.Fault{Key: "deployment_key_file", Source: "self-check", Problem: err.Error()})
		}
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// tryKey signs a token as the command token does, and looks whether it is taken for what
// it is.
func tryKey(ctx context.Context, c *config.Config, jwt *auth.JWT, key auth.Key) error {
	want := auth.Claims{
		Tenant: "self-check", TenantClaim: c.Auth.JWT.TenantClaim, Subject: "node",
		Issuer: c.Auth.JWT.Issuer, Audience: c.Auth.JWT.Audience, Expires: time.Now().Add(time.Minute),
	}
	token, err := key.Sign(want)
	if err != nil {
		return err
	}
	id, err := jwt.Authenticate(ctx, auth.Credentials{Token: token})
	if err != nil {
		return err
	}
	if id.Tenant != want.Tenant || id.Subject != want.Subject {
		return fmt.Errorf("it is taken for subject %q of tenant %q", id.Subject, id.Tenant)
	}
	return nil
}

// unseals looks whether what each key seals is opened, by those who have all of them.
func unseals(keys [][]byte) error {
	all, err := auth.NewSealer(keys)
	if err != nil {
		return err
	}
	for i, key := range keys {
		one, err := auth.NewSealer([][]byte{key})
		if err != nil {
			return err
		}
		sealed := auth.Resume{Tenant: "self-check", Subject: "node", Session: "s", Generation: 1}
		if opened, err := all.Open(one.Seal(sealed, time.Now()), time.Now()); err != nil || opened != sealed {
			return fmt.Errorf("what key %d seals must be opened, and is not", i+1)
		}
	}
	return nil
}
