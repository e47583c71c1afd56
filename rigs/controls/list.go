package controls

import (
	"time"

	"tare/area"
)

// sound is a server that decides by its rule, whatever happens, or answers nothing that says yes.
func sound(name string, decide func(*request) decision) Control {
	return Control{Name: name, Sound: true, decide: decide}
}

// All returns the servers: twenty-one with a fault, ten that are sound.
func All() []Control { return append(faulty(), soundOnes()...) }

func faulty() []Control {
	return []Control{
		{
			Name: "permits after waiting 50 ms", Share: 0.5,
			decide: func(r *request) decision { return when(r.waited > 50*time.Millisecond, permit) },
		},
		{
			Name: "permits after waiting 400 ms", Share: 0.5,
			decide: func(r *request) decision { return when(r.waited > 400*time.Millisecond, permit) },
		},
		{
			Name: "permits with more than 40 in flight", Share: 0.5,
			decide: func(r *request) decision { return when(r.flying > 40, permit) },
		},
		{
			Name: "permits with more than 64 in flight", Share: 0.5,
			decide: func(r *request) decision { return when(r.flying > 64, permit) },
		},
		{Name: "checks 99 of 100", Share: 0.01, decide: func(*request) decision { return when(chance(0.01), permit) }},
		{Name: "checks 199 of 200", Share: 0.005, decide: func(*request) decision { return when(chance(0.005), permit) }},
		{
			Name: "checks every request but each 150th", Share: 1.0 / 150,
			decide: func(r *request) decision { return when(r.number%150 == 0, permit) },
		},
		{
			Name: "samples when it is busy", Share: 0.05,
			decide: func(r *request) decision { return when(r.flying > 20 && chance(0.05), permit) },
		},
		{
			Name: "checks 300 a second and permits the rest", Share: 0.3,
			decide: func(r *request) decision { return when(!r.token(300, 30), permit) },
		},
		{
			Name: "drops checks when its ring of 128 is full", Share: 0.3,
			decide: func(r *request) decision { return when(r.flying > 128, permit) },
		},
		{
			Name: "has a fault in one of 40 callers", Share: 1.0 / 40,
			decide: func(r *request) decision { return when(r.call%40 == 7, permit) },
		},
		{
			Name: "permits the first request of a connection under load", Share: 0.05,
			decide: func(r *request) decision { return when(r.fresh && r.flying > 30, permit) },
		},
		{
			Name: "gives answers of others when it is busy", Share: 0.05,
			decide: func(r *request) decision { return when(r.flying > 16 && chance(0.05), another) },
		},
		{
			Name: "gives answers of others", Share: 0.01,
			decide: func(*request) decision { return when(chance(0.01), another) },
		},
		{
			Name: "permits for 500 ms after a restart", Share: 0.1, Under: area.Restart,
			decide: func(r *request) decision { return when(r.bare(), permit) }, after: withoutPolicies(500 * time.Millisecond),
		},
		{
			Name: "permits for 200 ms after a restart", Share: 0.04, Under: area.Restart,
			decide: func(r *request) decision { return when(r.bare(), permit) }, after: withoutPolicies(200 * time.Millisecond),
		},
		{
			Name: "has no policies for 100 ms of a reload", Share: 0.02, Under: area.Reload,
			decide: func(r *request) decision { return when(r.bare(), permit) }, reload: withoutPolicies(100 * time.Millisecond),
		},
		{
			Name: "races with a reload", Share: 0.02, Under: area.Reload,
			decide: func(r *request) decision { return when(r.bare() && chance(0.5), permit) },
			reload: withoutPolicies(400 * time.Millisecond),
		},
		{
			Name: "permits without its source", Share: 0.5, Under: area.Partition,
			decide: func(r *request) decision { return when(r.cut.Load(), permit) },
		},
		{
			Name: "permits from its cache without its source", Share: 0.1, Under: area.Partition,
			decide: func(r *request) decision { return when(r.cut.Load() && r.call%8 == 0, permit) },
		},
		{
			Name: "permits when its source is slow", Share: 0.5, Under: area.Slow,
			decide: func(r *request) decision { return when(r.slow.Load() > int64(4*time.Millisecond), permit) },
		},
	}
}

func soundOnes() []Control {
	return []Control{
		sound("decides", func(*request) decision { return byRule }),
		sound("sheds above 64 in flight", func(r *request) decision { return when(r.flying > 64, shed) }),
		sound("fails after waiting 100 ms",
			func(r *request) decision { return when(r.waited > 100*time.Millisecond, broken) }),
		sound("refuses all after waiting 100 ms",
			func(r *request) decision { return when(r.waited > 100*time.Millisecond, refuse) }),
		sound("fails 1 in 20", func(*request) decision { return when(chance(0.05), broken) }),
		sound("is silent 1 in 500", func(*request) decision { return when(chance(0.002), silent) }),
		sound("sheds without its source", func(r *request) decision { return when(r.cut.Load(), shed) }),
		sound("refuses all when its source is slow",
			func(r *request) decision { return when(r.slow.Load() > 0, refuse) }),
		{
			Name: "refuses all after a restart", Sound: true, after: withoutPolicies(time.Second),
			decide: func(r *request) decision { return when(r.bare(), refuse) },
		},
		{
			Name: "fails during a reload", Sound: true, reload: withoutPolicies(300 * time.Millisecond),
			decide: func(r *request) decision { return when(r.bare(), broken) },
		},
	}
}
