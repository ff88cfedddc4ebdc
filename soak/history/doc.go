// Package history judges what members of rooms were told, after a run in which servers
// were treated badly. It is pure: recorded histories go in, faults of the deployment come
// out. It knows nothing of how they were recorded, and takes no implementation's word for
// anything but what publishers and members heard.
//
// What must hold, for buffered events:
//
//   - Within a segment, which begins with a join or a reset and ends with the next reset,
//     a member has every offset once and in order. A lost connection does not end a
//     segment: who comes back goes on where it was.
//   - No event comes twice within a segment, at whatever position, and those of one
//     publisher come in the order in which they were published.
//   - All members have the same event at the same position.
//   - An event whose publisher heard its position is with every member whose segment
//     reaches so far, and every segment that no reset ended reaches to the end.
//   - A reset is told only to who lost something: whose position is older than a fault that
//     loses history, and one that nobody went on from; or who is further behind than the
//     buffer reaches.
//   - An accepted event that nobody ever sees was accepted while history was being lost.
package history
