package e2e

import "testing"

// What becomes of a session over real sockets.
func TestSessions(t *testing.T) {
	conform(t, serve(t, nil), []rule{
		{"a newer connection takes the session over, once for each token", `
			alice > {"t":"hello","token":"$TENANT/alice","rooms":[{"room":"chat:1"}]}
			alice < {"t":"welcome","session":"$s","resume":"$r","resumed":false}
			newer > {"t":"hello","token":"$TENANT/alice","resume":"$r","rooms":[]}
			newer < {"t":"welcome","session":"$s","resume":"$next","resumed":true,"rooms":[]}
			alice closed 4409
			newer quiet
			third > {"t":"hello","token":"$TENANT/alice","resume":"$r"}
			third < {"t":"welcome","session":"*","resumed":false}
			newer quiet
			newer cut
			newer > {"t":"hello","token":"$TENANT/alice","resume":"$next"}
			newer < {"t":"welcome","session":"$s","resumed":true}`},
		{"a token of another subject is refused, a bad one too, and the old credentials go on", `
			alice > {"t":"hello","token":"$TENANT/alice","rooms":[{"room":"chat:1"}]}
			alice < {"t":"welcome"}
			alice > {"t":"token","id":1,"token":"$TENANT/mallory"}
			alice < {"t":"reply","id":1,"err":{"code":"forbidden","retry_after_ms":null}}
			alice > {"t":"token","id":2,"token":"nonsense"}
			alice < {"t":"reply","id":2,"err":{"code":"unauthenticated","retry_after_ms":null}}
			alice > {"t":"leave","id":3,"room":"chat:1"}
			alice < {"t":"reply","id":3,"ok":{"room":"chat:1"}}`},
		{"after the reply to a token that loses rights, rooms are left", `
			alice > {"t":"hello","token":"$TENANT/alice","rooms":[{"room":"chat:1"},{"room":"chat:2"}]}
			alice < {"t":"welcome"}
			alice > {"t":"token","id":1,"token":"$TENANT/alice/[{\"rooms\":\"chat:2\",\"allow\":[\"join\"]}]"}
			alice < {"t":"reply","id":1,"ok":{"exp_ms":"*","resume":"*"}}
			alice < {"t":"left","room":"chat:1","reason":"forbidden"}
			alice quiet
			alice > {"t":"publish","id":2,"room":"chat:2","event":"message","data":1}
			alice < {"t":"reply","id":2,"err":{"code":"forbidden"}}
			alice > {"t":"leave","id":3,"room":"chat:2"}
			alice < {"t":"reply","id":3,"ok":{"room":"chat:2"}}`},
	})
}
