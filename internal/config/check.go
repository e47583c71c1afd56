package config

import "slices"

// pins warns if the generator and the target share a CPU.
func (c *checker) pins() {
	if !c.isValid("pin.generator") || !c.isValid("pin.target") {
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
