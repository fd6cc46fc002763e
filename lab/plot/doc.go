// Package plot draws charts as SVG, with text as text and colours for light and dark pages. What is of interest is
// drawn in strong colours, everything else in grey, and a line has its name at its end.
package plot
