package redis

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/yaza-dev/pulse/codec"
)

// names is the one place where keys and channels are made. Each is
// prefix, word, parts joined by ":". The tenant comes first and has no ":", so
// that two topics never share a name; of what follows the room only fixed-length
// digests and node names, which have no ":" either, come after it. The words are
// such that no name of one is a name of another.
//
// In cluster mode the word is followed by "{tag}", one of 1,024: everything of
// one topic, or of one session, lies in one slot.
type names struct {
	key, channel string // prefixes
	cluster      bool
}

func (n names) name(prefix, word, owner, rest string) string {
	var b strings.Builder
	b.Grow(len(prefix) + len(word) + len(owner) + len(rest) + 12)
	n.write(&b, prefix, word, owner)
	if rest != "" {
		b.WriteString(":")
		b.WriteString(rest)
	}
	return b.String()
}

func (n names) write(b *strings.Builder, prefix, word, owner string) {
	b.WriteString(prefix)
	b.WriteString(word)
	if n.cluster {
		b.WriteString("{")
		b.WriteString(tagOf(owner))
		b.WriteString("}")
	}
	b.WriteString(":")
	b.WriteString(owner)
}

// tag is that of what lies with owner; without a cluster there is none.
func (n names) tag(owner string) string {
	if !n.cluster {
		return ""
	}
	return tagOf(owner)
}

func (n names) buffer(t codec.Topic) string { return n.name(n.key, "buffer", t.String(), "") }
func (n names) meta(t codec.Topic) string   { return n.name(n.key, "meta", t.String(), "") }

// place is where a topic is: its channel, its keys, and the tag that they share.
type place struct{ channel, buffer, meta, tag string }

func (n names) placeOf(t codec.Topic) place {
	owner := t.String()
	var b strings.Builder
	b.Grow(2*len(n.key) + len(n.channel) + 3*(len(owner)+12))
	n.write(&b, n.channel, "room", owner)
	channel := b.Len()
	n.write(&b, n.key, "buffer", owner)
	buffer := b.Len()
	n.write(&b, n.key, "meta", owner)
	all := b.String()
	return place{all[:channel], all[channel:buffer], all[buffer:], n.tag(owner)}
}

func (n names) dedup(t codec.Topic, d digest) string {
	return n.name(n.key, "dedup", t.String(), d.String())
}

func (n names) presence(t codec.Topic) string { return n.name(n.key, "presence", t.String(), "") }

// presenceOf is what one node has in a topic. "/" is in no room's name.
func (n names) presenceOf(t codec.Topic, node string) string {
	return n.name(n.key, "presence", t.String(), "/"+node)
}

func (n names) session(tenant, id string) string {
	return n.name(n.key, "session", tenant+":"+id, "")
}

func (n names) node(id string) string { return n.key + "node:" + id }

// nodes is of all that live.
func (n names) nodes() string { return n.key + "nodes" }

// room is the channel of a topic's events.
func (n names) room(t codec.Topic) string { return n.name(n.channel, "room", t.String(), "") }

// changes is the channel of who comes and goes in a topic.
func (n names) changes(t codec.Topic) string { return n.name(n.channel, "presence", t.String(), "") }

// control is the channel of what is told one node.
func (n names) control(node string) string { return n.name(n.channel, "ctl", node, "") }

// probe is the channel on which a node hears itself by one link, which carries a tag.
func (n names) probe(tag, node string) string { return own(n.channel, "probe", tag, node) }

// trial is a key with the server of one link, under which there never is anything.
func (n names) trial(tag, node string) string { return own(n.key, "trial", tag, node) }

func own(prefix, word, tag, node string) string {
	if tag != "" {
		word += "{" + tag + "}"
	}
	return prefix + word + ":" + node
}

// digest stands for a subject and a key of its own choice. It has one size and
// keeps what clients chose out of the names; nobody can make two meet in it.
type digest [16]byte

// What a digest is of.
const (
	ofPublication = 0
	ofCommand     = 1
)

func newDigest(of byte, subject, key string) digest {
	var scratch [576]byte
	name := binary.LittleEndian.AppendUint32(append(scratch[:0], of), uint32(len(subject)))
	name = append(name, subject...)
	name = append(name, key...)
	sum := sha256.Sum256(name)
	return digest(sum[:16])
}

func (d digest) String() string { return base64.RawURLEncoding.EncodeToString(d[:]) }
