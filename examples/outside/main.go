// Command tare-hash is tare with the area hash.
package main

import (
	"tare"

	"example.com/tare-hash/hash"
)

func main() { tare.Main(hash.Area{}) }
