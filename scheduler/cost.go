package scheduler

import "time"

// modelCost is the cost of items messages with bytes bytes in all.
func modelCost(items, bytes int) int64 { return int64(items) + int64(bytes>>10) }

// realCost corrects the model's cost by measured time.
func realCost(model int64, took time.Duration) int64 {
	return min(max(int64(took/UnitTime), model), MaxCorrection*model)
}
