/** Runs ECharts on a canvas that is as large as its element. */
import { BarChart, LineChart } from 'echarts/charts';
import { GridSimpleComponent } from 'echarts/components';
import { type EChartsType, init, use } from 'echarts/core';
import { CanvasRenderer } from 'echarts/renderers';
import { type RefObject, useEffect, useRef, useState } from 'react';
import type { ChartOption } from './chart-option.js';

use([BarChart, LineChart, GridSimpleComponent, CanvasRenderer]);

export interface ChartHandlers {
  /** A bar was clicked. */
  readonly onBar: (series: number, bucket: number) => void;
  /** The pointer is over a bar, or has left it. */
  readonly onHover: (series: number | undefined) => void;
  readonly onDrawn: () => void;
}

export interface EChart {
  readonly element: RefObject<HTMLDivElement | null>;
  /** In CSS pixels; 0 before it is laid out. */
  readonly width: number;
  readonly highlight: (series: number | undefined) => void;
}

export function useECharts(option: ChartOption, handlers: ChartHandlers): EChart {
  const element = useRef<HTMLDivElement>(null);
  const chart = useRef<EChartsType>(undefined);
  const latest = useRef(handlers);
  const [width, setWidth] = useState(0);

  useEffect(() => {
    latest.current = handlers;
  });

  useEffect(() => {
    if (!element.current) return;
    const created = init(element.current, null, { renderer: 'canvas' });
    chart.current = created;
    created.on('click', ({ seriesIndex, dataIndex }) => latest.current.onBar(seriesIndex ?? 0, dataIndex));
    created.on('mouseover', ({ seriesIndex }) => latest.current.onHover(seriesIndex));
    created.on('mouseout', () => latest.current.onHover(undefined));
    created.on('finished', () => latest.current.onDrawn());
    const observer = new ResizeObserver(([entry]) => {
      // The first call comes when observing begins; nothing has changed then.
      if (entry?.contentRect.width !== created.getWidth() || entry.contentRect.height !== created.getHeight()) {
        created.resize();
      }
      setWidth(created.getWidth());
    });
    observer.observe(element.current);
    return () => {
      observer.disconnect();
      created.dispose();
      chart.current = undefined;
    };
  }, []);

  useEffect(() => {
    chart.current?.setOption(option, { notMerge: true });
  }, [option]);

  const highlight = (series: number | undefined) => {
    chart.current?.dispatchAction({ type: 'downplay' });
    if (series !== undefined) chart.current?.dispatchAction({ type: 'highlight', seriesIndex: series });
  };
  return { element, width, highlight };
}
