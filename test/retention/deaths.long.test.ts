/** Dropping the events of closed months, in a process that dies at each of its statements. */
import { expect, it } from '@jest/globals';
import { DECEMBER, sealedMonths } from './sealed-months.js';

const fixture = sealedMonths();

it.each(['before', 'after'] as const)(
  'dropping is finished by the next call after the process died %s any of its statements',
  async (when) => {
    const responses = await fixture.responses();
    await fixture.close(DECEMBER);
    let deaths = 0;
    while (!(await fixture.dropOrDie((_statement, number) => number === deaths + 1, when))) {
      deaths += 1;
      expect(await fixture.responses()).toEqual(responses);
    }
    expect(deaths).toBeGreaterThan(20);
    expect(await fixture.responses()).toEqual(responses);
    expect(await fixture.months()).toEqual([DECEMBER]);
  },
);
