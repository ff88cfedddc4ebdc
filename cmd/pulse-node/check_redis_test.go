package main

import (
	"strings"
	"testing"

	"github.com/yaza-dev/pulse/tests/redis/server"
)

// A node is not called well before what it publishes has come back to it by Redis, and
// says why it is not: here its user may do everything but one thing. What is off in
// silence is found by who needs it. StackExchange/StackExchange.Redis#439
func TestB155_TheBridgeHearsItselfBeforeItIsReady(t *testing.T) {
	deployment := write(t, "deployment", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n")
	password := write(t, "password", "secret\n")
	redis := server.Start(t)
	for user, rules := range map[string][]string{
		"all":         {"~*", "&*", "+@all"},
		"unpublished": {"~*", "&*", "+@all", "-publish"},
		"elsewhere":   {"~*", "resetchannels", "&other:*", "+@all"},
	} {
		redis.Do(append([]string{"ACL", "SETUSER", user, "on", ">secret"}, rules...)...)
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			n := &trial{running: start(t, "serve", "--config", write(t, "pulse.yaml", trialYAML), "--bridge.redis.addresses="+redis.Address(),
				"--deployment_key_file="+deployment, "--bridge.redis.username="+user, "--bridge.redis.password_file="+password), t: t}
			var well bool
			var text string
			soon(awhile, func() bool {
				_, text = get(t, n.internal+"/readyz")
				well = strings.Contains(text, `"ok"`)
				return well
			})
			if want := user == "all"; well != want || !want && !strings.Contains(text, `"why":"`) {
				t.Errorf("it says %s", text)
			}
		})
	}
}
