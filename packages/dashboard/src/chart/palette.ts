/**
 * The colours of the chart in each theme: distinct ones for the groups, the accent first, and grey for all others. The chart is
 * drawn on a canvas, which cannot use the style sheet's variables.
 */
import { OTHER_KEY, type Series } from '../breakdown/breakdown.js';
import type { Theme } from '../shell/theme.js';

export interface Palette {
  readonly series: readonly string[];
  readonly other: string;
  readonly previous: string;
  readonly forecast: string;
  readonly forecastEdge: string;
  readonly budget: string;
  /** Of the card behind the chart. */
  readonly surface: string;
  readonly text: string;
  readonly axis: string;
  readonly grid: string;
}

const LIGHT: Palette = {
  series: [
    '#2f66e0',
    '#14a38b',
    '#f0a030',
    '#8a5fd6',
    '#e2596e',
    '#43a9e0',
    '#7d9c34',
    '#cf6bb0',
    '#b07a4a',
    '#5b6b99',
  ],
  other: '#b9c0cc',
  previous: '#3d4656',
  forecast: 'rgb(43 95 217 / 9%)',
  forecastEdge: '#9fb4e4',
  budget: '#b3261e',
  surface: '#ffffff',
  text: '#5a6372',
  axis: '#cfd5de',
  grid: '#e9ecf1',
};

const DARK: Palette = {
  series: [
    '#6b98ff',
    '#35c2aa',
    '#f3b65a',
    '#ad8bf0',
    '#f0808f',
    '#74c6f2',
    '#a2c25c',
    '#e294cb',
    '#cb9a72',
    '#8f9fcc',
  ],
  other: '#59616f',
  previous: '#dfe4ec',
  forecast: 'rgb(123 163 255 / 12%)',
  forecastEdge: '#4d6396',
  budget: '#ff9a8f',
  surface: '#151920',
  text: '#98a2b1',
  axis: '#39414e',
  grid: '#232932',
};

export function paletteOf(theme: Theme): Palette {
  return theme === 'dark' ? DARK : LIGHT;
}

/** By rank: the most expensive group has the accent. */
export function seriesColor({ key }: Pick<Series, 'key'>, rank: number, palette: Palette): string {
  return key === OTHER_KEY ? palette.other : (palette.series[rank % palette.series.length] ?? palette.other);
}
