package chart

// Style is the stylesheet for a page that holds charts. It swaps the two layouts at 600 px, sets widths, and brightens
// the palette on a dark page. A page without it shows the wide layout in colours that are legible on both.
const Style = `.chart{display:block;width:100%;height:auto}
.chart.chart-narrow{display:none}
@media (max-width:600px){.chart.chart-wide{display:none}.chart.chart-narrow{display:block}}
@media print{.chart.chart-wide{display:block}.chart.chart-narrow{display:none}}
@media (prefers-color-scheme:dark){.chart .c1{color:#58a6ff}.chart .c2{color:#f0883e}.chart .c3{color:#2fbf8f}
.chart .c4{color:#e08fc0}.chart .c5{color:#d9a637}.chart .c6{color:#a99cf5}.chart .c7{color:#c98a6b}.chart .c8{color:#7cc4d8}
.chart .good{color:#3fb950}.chart .bad{color:#ff7b72}.chart .unsure{color:#d29922}.chart .neutral{color:#9aa2ab}}
`
