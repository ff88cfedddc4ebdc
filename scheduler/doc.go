// Package scheduler decides who runs next.
package scheduler
