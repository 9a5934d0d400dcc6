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
const SUMMARY = summarize(STACK, { dataDir: USUAL, demo: false, now: NOW });

describe('the summary of npm start', () => {
  it('tells where the page, the collector and the metrics are, and the key that the page asks for', () => {
    expect(SUMMARY).toMatch(/Web page {3}http:\/\/127\.0\.0\.1:8080\/\n/);
    expect(SUMMARY).toMatch(/Collector {2}http:\/\/127\.0\.0\.1:8081\n/);
    expect(SUMMARY).toMatch(/Admin key {2}mlk_admin\n/);
    expect(SUMMARY).toMatch(/Metrics {4}http:\/\/127\.0\.0\.1:3\/metrics\n +http:\/\/127\.0\.0\.1:4\/metrics/);
  });

  it('asks about today, and sends an event that is accepted, with the key that may do that alone', () => {
    expect(SUMMARY).toContain(
      "'http://127.0.0.1:8080/v0/accounts/demo/metrics?startTime=2026-12-31T00:00:00Z&endTime=2027-01-01T00:00:00Z&groupBy=resource_name'",
    );
    const command =
      /curl -s -H 'Authorization: Bearer (\w+)' -H 'Content-Type: application\/json' \\\n +'(\S+)' \\\n +-d '(.*)'\n/;
    const [, key, url, body = ''] = command.exec(SUMMARY) ?? [];
    expect([key, url]).toEqual(['mlk_emitter', 'http://127.0.0.1:8081/v0/accounts/demo/events']);
    const event = { accountId: 'demo', ...JSON.parse(body), eventId: randomUUID() };
    expect(parseUsageEvent(event, NOW.getTime()).ok).toBe(true);
  });

  it('tells where the command must look when that is not the usual place', () => {
    expect(SUMMARY).not.toContain('METERLINE_DATA_DIR');
    const dataDir = { name: "it's here", path: "/tmp/it's here" };
    expect(summarize(STACK, { dataDir, demo: true, now: NOW })).toContain(
      "export METERLINE_DATA_DIR='/tmp/it'\\''s here'",
    );
  });
});
