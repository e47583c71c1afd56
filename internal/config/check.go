package config

import "slices"

// rest checks fields that are independent of others.
func (c *checker) rest() {
	if !c.fine("pin.generator") || !c.fine("pin.target") {
		return
	}
	generator, _ := c.e.Pin.Generator.List()
	target, _ := c.e.Pin.Target.List()
	for _, cpu := range generator {
		if slices.Contains(target, cpu) {
			c.warn("pin", "generator and target share CPU %d: they will disturb each other", cpu)
			return
		}
	}
}
