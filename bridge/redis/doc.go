// Package redis is the bridge of many nodes on one Redis.
package redis
