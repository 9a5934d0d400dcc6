import { describe, expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR, RESOLUTIONS } from '@meterline/catalog';
import fc from 'fast-check';
import { NOTHING_SEALED } from '../rollups/watermarks.js';
import { planSegments, type Segment } from './plan.js';

const START = Date.UTC(2025, 9, 1);

const instant = fc.oneof(
  fc.integer({ min: 0, max: 40 * MS_PER_DAY }),
  fc.integer({ min: 0, max: 40 }).map((days) => days * MS_PER_DAY),
  fc.integer({ min: 0, max: 960 }).map((hours) => hours * MS_PER_HOUR),
);
const window = fc
  .tuple(instant, instant)
  .filter(([a, b]) => a !== b)
  .map(([a, b]) => ({ startTime: START + Math.min(a, b), endTime: START + Math.max(a, b) }));
const sealed = fc
  .tuple(fc.integer({ min: -24, max: 1_000 }), fc.integer({ min: -1, max: 42 }))
  .map(([hours, days]) => ({ hourly: START + hours * MS_PER_HOUR, daily: START + days * MS_PER_DAY }));

const LENGTH = { hourly: MS_PER_HOUR, daily: MS_PER_DAY } as const;

describe('planSegments', () => {
  it('covers the window exactly, in ascending order, without overlap', () => {
    fc.assert(
      fc.property(window, fc.constantFrom(...RESOLUTIONS), sealed, (asked, resolution, seals) => {
        const segments = planSegments(asked, resolution, seals);
        expect(segments[0]?.from).toBe(asked.startTime);
        expect(segments.at(-1)?.to).toBe(asked.endTime);
        for (const [index, segment] of segments.entries()) {
          expect(segment.from).toBeLessThan(segment.to);
          if (index > 0) expect(segment.from).toBe(segments[index - 1]?.to);
        }
      }),
    );
  });

  it('reads whole, sealed buckets from cells, and never days where the answer has hours', () => {
    fc.assert(
      fc.property(window, fc.constantFrom(...RESOLUTIONS), sealed, (asked, resolution, seals) => {
        for (const { source, from, to } of planSegments(asked, resolution, seals)) {
          if (source === 'events') continue;
          expect(from % LENGTH[source]).toBe(0);
          expect(to % LENGTH[source]).toBe(0);
          expect(to).toBeLessThanOrEqual(seals[source]);
          if (resolution === 'hourly') expect(source).toBe('hourly');
        }
      }),
    );
  });

  it('reads no events of a whole sealed hour, and no hours of a whole sealed day', () => {
    fc.assert(
      fc.property(window, fc.constantFrom(...RESOLUTIONS), sealed, (asked, resolution, seals) => {
        const holds = ({ from, to }: Segment, length: number, until: number) => {
          const first = Math.ceil(from / length) * length;
          return first + length <= Math.min(to, until);
        };
        for (const segment of planSegments(asked, resolution, seals)) {
          if (segment.source === 'events') expect(holds(segment, MS_PER_HOUR, seals.hourly)).toBe(false);
          if (segment.source === 'hourly' && resolution !== 'hourly') {
            expect(holds(segment, MS_PER_DAY, seals.daily)).toBe(false);
          }
        }
      }),
    );
  });

  it('asks the truth alone where nothing is sealed', () => {
    const asked = { startTime: START, endTime: START + 30 * MS_PER_DAY };
    expect(planSegments(asked, 'daily', NOTHING_SEALED)).toEqual([
      { source: 'events', from: asked.startTime, to: asked.endTime },
    ]);
  });
});
