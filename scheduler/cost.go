package scheduler

import "time"

// modelCost is the cost of items messages with bytes bytes in all.
func modelCost(items, bytes int) int64 { return int64(items) + int64(bytes>>10) }

// realCost corrects the model's cost by measured time. What took the time of a whole batch costs a quantum at least, so that slow handlers
// yield after each batch however little the model knows of them.
func realCost(model int64, took time.Duration) int64 {
	cost := min(max(int64(took/UnitTime), model), MaxCorrection*model)
	if took >= BatchTime {
		cost = max(cost, Quantum)
	}
	return cost
}
