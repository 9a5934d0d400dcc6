import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { parseUsageEvent } from '@meterline/catalog';
import { summarize } from './summary.js';

const STACK = {
  addresses: {
    apiUrl: 'http://127.0.0.1:8080',
    collectorUrl: 'http://127.0.0.1:8081',
    redisUrl: 'redis://127.0.0.1:1',
    clickhouseUrl: 'http://127.0.0.1:2',
    clickhouseUser: 'meterline',
    clickhousePassword: 'of the stack',
    clickhouseDatabase: 'meterline',
    account: 'demo',
    adminKey: 'mlk_admin',
    memberKey: 'mlk_member',
    emitterKey: 'mlk_emitter',
  },
  metricsUrls: ['http://127.0.0.1:3/metrics', 'http://127.0.0.1:4/metrics'],
};
const USUAL = { name: '.meterline', path: '/project/.meterline' };
const NOW = new Date('2026-12-31T23:59:59Z');

describe('what npm start says', () => {
  it('asks about today', () => {
    expect(summarize(STACK, { dataDir: USUAL, demo: true, now: NOW })).toContain(
      "'http://127.0.0.1:8080/v0/accounts/demo/metrics?startTime=2026-12-31T00:00:00Z&endTime=2027-01-01T00:00:00Z&groupBy=resource_name'",
    );
  });

  it('tells where the web page is, and the key that it asks for', () => {
    const told = summarize(STACK, { dataDir: USUAL, demo: true, now: NOW });
    expect(told).toMatch(/Web page {3}http:\/\/127\.0\.0\.1:8080\/\n/);
    expect(told).toMatch(/Admin key {2}mlk_admin\n/);
  });

  it('tells where each service may be watched', () => {
    expect(summarize(STACK, { dataDir: USUAL, demo: true, now: NOW })).toMatch(
      /Metrics {4}http:\/\/127\.0\.0\.1:3\/metrics\n +http:\/\/127\.0\.0\.1:4\/metrics/,
    );
  });

  it('tells how to send an event, with the key that may do that alone', () => {
    const told = summarize(STACK, { dataDir: USUAL, demo: false, now: NOW });
    expect(told).toMatch(/Collector {2}http:\/\/127\.0\.0\.1:8081\n/);
    const [, key, url, body = ''] =
      /curl -s -H 'Authorization: Bearer (\w+)' -H 'Content-Type: application\/json' \\\n +'(\S+)' \\\n +-d '(.*)'\n/.exec(
        told,
      ) ?? [];
    expect([key, url]).toEqual(['mlk_emitter', 'http://127.0.0.1:8081/v0/accounts/demo/events']);
    expect(parseUsageEvent({ accountId: 'demo', ...JSON.parse(body), eventId: randomUUID() }, NOW.getTime()).ok).toBe(
      true,
    );
  });

  it('tells where the command must look when that is not the usual place', () => {
    expect(summarize(STACK, { dataDir: USUAL, demo: true, now: NOW })).not.toContain('METERLINE_DATA_DIR');
    const dataDir = { name: "it's here", path: "/tmp/it's here" };
    expect(summarize(STACK, { dataDir, demo: true, now: NOW })).toContain(
      "export METERLINE_DATA_DIR='/tmp/it'\\''s here'",
    );
  });
});
