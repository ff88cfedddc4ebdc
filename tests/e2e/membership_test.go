package e2e

import (
	"strings"
	"testing"
)

// Section 3: the frames of the server, and joining in all its forms.
func TestMemberships(t *testing.T) {
	conform(t, serve(t, nil), []rule{
		{"the welcome has all its fields", `
			alice > {"t":"hello","token":"$TENANT/alice","accept":["no-such-feature"],"client":"test/1"}
			alice < {"t":"welcome","session":"*","resume_ttl_ms":300000,"resumed":false,"node":"*","tenant":"*","subject":"alice","transport":"websocket","codec":"*","compression":false,"accept":[],"ping_ms":25000,"pong_ms":8000,"max_message_bytes":65536,"max_frame_bytes":524288,"now_ms":"*","live":true,"rooms":[]}`},
		{"rooms of a hello are answered in the order asked", `
			alice hello chat:2
			bob > {"t":"hello","token":"$TENANT/bob","rooms":[{"room":"chat:2"},{"room":"nosuch:1"},{"room":"a b"},{"room":"chat:1"}]}
			bob < {"t":"welcome","rooms":[{"room":"chat:2","ok":{"room":"chat:2","recovered":false},"err":null},{"room":"nosuch:1","ok":null,"err":{"code":"not_found"}},{"room":"a b","err":{"code":"bad_request"}},{"room":"chat:1","ok":{"room":"chat:1"}}]}`},
		{"a room outside the grammar in a hello is told as given", `
			alice > {"t":"hello","token":"$TENANT/alice","rooms":[{"room":""},{"room":"é\u0000"},{"room":"chat:1","offset":1}]}
			alice < {"t":"welcome","rooms":[{"room":"","err":{"code":"bad_request"}},{"room":"é\u0000","err":{"code":"bad_request"}},{"room":"chat:1","err":{"code":"bad_request"}}]}`},
		{"a room named twice in a hello has two results and the last counts", `
			bob hello chat:1
			bob > {"t":"publish","id":1,"room":"chat:1","event":"message","data":1}
			bob <~ {"t":"reply","id":1}
			bob <~ {"t":"event","epoch":"$e"}
			alice > {"t":"hello","token":"$TENANT/alice","rooms":[{"room":"chat:1"},{"room":"chat:1","epoch":"$e","offset":0}]}
			alice < {"t":"welcome","rooms":[{"room":"chat:1"},{"room":"chat:1","ok":{"recovered":true,"offset":0}}]}
			alice < {"t":"event","offset":1}
			alice quiet
			bob > {"t":"publish","id":2,"room":"chat:1","event":"message","data":2}
			bob <~ {"t":"reply","id":2}
			bob <~ {"t":"event","offset":2}
			alice < {"t":"event","offset":2}
			alice quiet`},
		{"requests may follow the hello at once", `
			alice > {"t":"hello","token":"$TENANT/alice","rooms":[{"room":"chat:1"}]}
			alice > {"t":"publish","id":1,"room":"chat:1","event":"message","data":1}
			alice > {"t":"join","id":2,"room":"chat:2"}
			alice < {"t":"welcome"}
			alice <~ {"t":"reply","id":1,"ok":{"outcome":"accepted"}}
			alice <~ {"t":"event","room":"chat:1","offset":1}
			alice <~ {"t":"reply","id":2,"ok":{"room":"chat:2"}}`},
		{"a second hello is a conflict and changes nothing", `
			alice hello chat:1
			alice > {"t":"hello","token":"other/eve","rooms":[{"room":"chat:2"}]}
			alice < {"t":"error","code":"conflict","re":"hello","message":"*","retry_after_ms":null}
			alice > {"t":"publish","id":1,"room":"chat:2","event":"message","data":1}
			alice < {"t":"reply","id":1,"err":{"code":"not_joined"}}
			alice > {"t":"publish","room":"chat:1","event":"message","data":1}
			alice < {"t":"event","from":"alice"}`},
		{"a join without a position starts at the newest", `
			bob hello chat:1
			bob > {"t":"publish","id":1,"room":"chat:1","event":"message","data":1}
			bob <~ {"t":"reply","id":1}
			bob <~ {"t":"event","epoch":"$e"}
			alice hello
			alice > {"t":"join","id":1,"room":"chat:1"}
			alice < {"t":"reply","id":1,"ok":{"room":"chat:1","epoch":"$e","offset":1,"recovered":false,"reset":null}}
			alice quiet`},
		{"a join with a position is told its own and gets what follows", `
			bob hello chat:1
			bob > {"t":"publish","room":"chat:1","event":"message","data":1}
			bob < {"t":"event","epoch":"$e"}
			bob > {"t":"publish","room":"chat:1","event":"message","data":2}
			bob < {"t":"event"}
			bob > {"t":"publish","room":"chat:1","event":"message","data":3}
			bob < {"t":"event"}
			alice hello
			alice > {"t":"join","id":1,"room":"chat:1","epoch":"$e","offset":1}
			alice < {"t":"reply","id":1,"ok":{"epoch":"$e","offset":1,"recovered":true,"reset":null}}
			alice < {"t":"event","offset":2,"data":2,"epoch":"$e","eid":"$second"}
			alice < {"t":"event","offset":3,"data":3}
			alice quiet
			alice > {"t":"join","id":2,"room":"chat:1","epoch":"$e","offset":1}
			alice < {"t":"reply","id":2,"ok":{"recovered":true,"offset":1}}
			alice < {"t":"event","offset":2,"eid":"$second"}
			alice < {"t":"event","offset":3}
			alice quiet`},
		{"the position at the head is recovered and nothing follows", `
			bob hello chat:1
			bob > {"t":"publish","room":"chat:1","event":"message","data":1}
			bob < {"t":"event","epoch":"$e"}
			alice hello {"room":"chat:1","epoch":"$e","offset":1}
			alice quiet`},
		{"an offset beyond the newest counts as another epoch", `
			bob hello chat:1
			bob > {"t":"publish","room":"chat:1","event":"message","data":1}
			bob < {"t":"event","epoch":"$e"}
			alice hello
			alice > {"t":"join","id":1,"room":"chat:1","epoch":"$e","offset":9007199254740991}
			alice < {"t":"reply","id":1,"ok":{"epoch":"$e","offset":1,"recovered":false,"reset":"epoch"}}
			alice quiet`},
		{"another epoch resets", `
			alice hello
			alice > {"t":"join","id":1,"room":"chat:1","epoch":"0123456789abcdef","offset":5}
			alice < {"t":"reply","id":1,"ok":{"epoch":"*","offset":0,"recovered":false,"reset":"epoch"}}
			alice > {"t":"publish","room":"chat:1","event":"message","data":1}
			alice < {"t":"event","offset":1}`},
		{"there is no partial replay", `
			bob hello short:1
			bob > {"t":"publish","room":"short:1","event":"message","data":0}
			bob < {"t":"event","epoch":"$e","offset":1}` + strings.Repeat(`
			bob > {"t":"publish","room":"short:1","event":"message","data":1}
			bob < {"t":"event","epoch":"$e"}`, 39) + `
			alice hello
			alice > {"t":"join","id":1,"room":"short:1","epoch":"$e","offset":37}
			alice < {"t":"reply","id":1,"ok":{"epoch":"$e","offset":40,"recovered":false,"reset":"expired"}}
			alice quiet
			alice > {"t":"join","id":2,"room":"short:1","epoch":"$e","offset":38}
			alice < {"t":"reply","id":2,"ok":{"offset":38,"recovered":true}}
			alice < {"t":"event","offset":39}
			alice < {"t":"event","offset":40}
			alice quiet`},
		{"data of a reset is the snapshot at its position", `
			bob hello tally:1
			bob > {"t":"publish","room":"tally:1","event":"n","data":4}
			bob < {"t":"event","epoch":"$e"}
			bob > {"t":"publish","room":"tally:1","event":"n","data":5}
			bob < {"t":"event","offset":2}
			alice hello
			alice > {"t":"join","id":1,"room":"tally:1","epoch":"other","offset":2}
			alice < {"t":"reply","id":1,"ok":{"epoch":"$e","offset":2,"reset":"epoch","data":{"Sum":9}}}
			alice > {"t":"join","id":2,"room":"tally:1"}
			alice < {"t":"reply","id":2,"ok":{"offset":2,"reset":null,"data":{"Sum":9}}}
			alice > {"t":"join","id":3,"room":"tally:1","epoch":"$e","offset":1}
			alice < {"t":"reply","id":3,"ok":{"recovered":true,"data":null}}
			alice < {"t":"event","data":5}`},
		{"a second join replaces the first membership", `
			alice hello
			alice > {"t":"join","id":1,"room":"chat:1"}
			alice > {"t":"join","id":2,"room":"chat:1"}
			alice < {"t":"reply","id":1,"ok":{"room":"chat:1"}}
			alice < {"t":"reply","id":2,"ok":{"room":"chat:1"}}
			alice > {"t":"publish","room":"chat:1","event":"message","data":1}
			alice < {"t":"event","offset":1}
			alice quiet`},
		{"B137 join leave and join without waiting", `
			alice hello
			alice > {"t":"join","id":1,"room":"chat:1"}
			alice > {"t":"leave","id":2,"room":"chat:1"}
			alice > {"t":"join","id":3,"room":"chat:1"}
			alice < {"t":"reply","id":1,"ok":{"room":"chat:1"}}
			alice < {"t":"reply","id":2,"ok":{"room":"chat:1"}}
			alice < {"t":"reply","id":3,"ok":{"room":"chat:1"}}
			alice > {"t":"publish","room":"chat:1","event":"message","data":1}
			alice < {"t":"event","offset":1}
			alice quiet`},
		{"after the reply to leave nothing of the room comes", `
			bob hello chat:1
			alice hello chat:1
			alice > {"t":"leave","id":1,"room":"chat:1"}
			alice < {"t":"reply","id":1,"ok":{"room":"chat:1"}}
			bob > {"t":"publish","id":1,"room":"chat:1","event":"message","data":1}
			bob <~ {"t":"reply","id":1}
			bob > {"t":"publish","id":2,"room":"chat:1","event":"typing","data":1}
			bob <~ {"t":"reply","id":2}
			alice quiet`},
		{"leaving what was not joined", `
			alice hello chat:1
			alice > {"t":"leave","id":1,"room":"chat:2"}
			alice < {"t":"reply","id":1,"err":{"code":"not_joined"}}
			alice > {"t":"leave","id":2,"room":"chat:1"}
			alice < {"t":"reply","id":2,"ok":{"room":"chat:1"}}
			alice > {"t":"leave","id":3,"room":"chat:1"}
			alice < {"t":"reply","id":3,"err":{"code":"not_joined"}}`},
		{"a publisher is sent its own event like any member", `
			bob hello chat:1
			alice hello chat:1
			alice > {"t":"publish","id":1,"room":"chat:1","event":"message","data":1}
			alice <~ {"t":"event","from":"alice","session":"$s","eid":"$id","offset":1,"epoch":"$e"}
			alice <~ {"t":"reply","id":1,"ok":{"outcome":"accepted","eid":"$id","epoch":"$e","offset":1,"duplicate":null}}
			bob < {"t":"event","from":"alice","session":"$s","eid":"$id","ts":"*"}`},
		{"the result of a transient publish has no position", `
			alice hello chat:1
			alice > {"t":"publish","id":1,"room":"chat:1","event":"typing","data":1}
			alice <~ {"t":"reply","id":1,"ok":{"outcome":"accepted","eid":"*","epoch":null,"offset":null}}`},
		{"echo false withholds own events and tells the position", `
			alice hello {"room":"chat:1","echo":false}
			alice > {"t":"publish","id":1,"room":"chat:1","event":"message","data":1}
			alice <~ {"t":"reply","id":1,"ok":{"offset":1,"epoch":"$e"}}
			alice <~ {"t":"position","room":"chat:1","epoch":"$e","offset":1}
			alice > {"t":"publish","id":2,"room":"chat:1","event":"typing","data":1}
			alice <~ {"t":"reply","id":2}
			alice quiet
			bob hello chat:1
			bob > {"t":"publish","room":"chat:1","event":"message","data":2}
			alice < {"t":"event","from":"bob","offset":2}`},
		{"echo false withholds the own session's events and not the own subject's", `
			alice hello {"room":"chat:1","echo":false}
			bob > {"t":"hello","token":"$TENANT/alice","rooms":[{"room":"chat:1"}]}
			bob < {"t":"welcome"}
			bob > {"t":"publish","room":"chat:1","event":"message","data":1}
			alice < {"t":"event","from":"alice","offset":1}`},
		{"equal dedup keys are one event", `
			alice hello chat:1
			alice > {"t":"publish","id":1,"room":"chat:1","event":"message","data":1,"dedup_key":"k"}
			alice <~ {"t":"reply","id":1,"ok":{"eid":"$id","offset":1,"duplicate":null}}
			alice <~ {"t":"event","offset":1}
			alice > {"t":"publish","id":2,"room":"chat:1","event":"message","data":2,"dedup_key":"k"}
			alice < {"t":"reply","id":2,"ok":{"eid":"$id","offset":1,"duplicate":true}}
			alice quiet`},
		{"pings are answered by pongs with their id", `
			alice hello
			alice > {"t":"ping","id":77}
			alice < {"t":"pong","id":77}
			alice > {"t":"ping"}
			alice < {"t":"pong","id":null}`},
		{"ttl", `
			alice hello chat:1
			alice > {"t":"publish","id":1,"room":"chat:1","event":"message","data":1,"ttl_ms":0}
			alice < {"t":"reply","id":1,"err":{"code":"expired"}}
			alice > {"t":"publish","id":2,"room":"chat:1","event":"message","data":1,"ttl_ms":9007199254740991}
			alice <~ {"t":"reply","id":2,"ok":{"offset":1}}
			alice <~ {"t":"event","offset":1}
			alice > {"t":"publish","room":"chat:1","event":"message","data":1,"ttl_ms":0}
			alice < {"t":"error","code":"expired","re":"publish","room":"chat:1"}
			alice quiet`},
		{"a lost connection ends the memberships and a new hello has only the rooms that it names", `
			bob hello chat:1 chat:2
			alice hello chat:1 chat:2
			alice cut
			alice hello chat:2
			bob > {"t":"publish","id":1,"room":"chat:1","event":"message","data":1}
			bob <~ {"t":"reply","id":1}
			alice quiet
			bob > {"t":"publish","id":2,"room":"chat:2","event":"message","data":1}
			bob <~ {"t":"reply","id":2}
			alice < {"t":"event","room":"chat:2"}`},
		{"a resume token that is none is answered by a new session", `
			alice > {"t":"hello","token":"$TENANT/alice","resume":"nonsense"}
			alice < {"t":"welcome","resumed":false,"session":"*"}`},
	})
}
