import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DAY, errorOf, metricsPath, startApi, type TestApi } from './fixture.js';

let api: TestApi;
let key: string;

beforeAll(async () => {
  api = await startApi();
  key = await api.key('acme');
});
afterAll(() => api.stop());

const ask = (path: string, version?: string) =>
  api.request(path, {
    headers: { authorization: `Bearer ${key}`, ...(version !== undefined && { 'svc-version': version }) },
  });

describe('Svc-Version', () => {
  it('is the earliest stable one when it is left out, and is echoed', async () => {
    expect((await ask(metricsPath('acme', DAY))).headers.get('svc-version')).toBe('2026-04-16');
  });

  it.each(['2026-04-16', '2026-04-28'])('%s applies and is echoed', async (version) => {
    const answer = await ask(metricsPath('acme', DAY), version);
    expect([answer.status, answer.headers.get('svc-version')]).toEqual([200, version]);
  });

  it('changes nothing in an answer of the Billing API', async () => {
    const [old, recent] = await Promise.all(
      ['2026-04-16', '2026-04-28'].map((version) => ask(metricsPath('acme', DAY), version)),
    );
    expect(recent?.text).toBe(old?.text);
  });

  it.each(['2026-04-17', '2026-04-28.preview', '2026-04-16.preview', 'latest', '', 'v0', '2026-04-16, 2026-04-16'])(
    '%j is not valid, for any operation',
    async (version) => {
      for (const path of [
        '/v0/accounts',
        metricsPath('acme', DAY),
        '/v0/accounts/acme/metrics/enums/group-by',
        '/v0/accounts/acme/metrics/enums/resource-types',
      ]) {
        const answer = await ask(path, version);
        expect(answer.status).toBe(400);
        const { error, message } = errorOf(answer);
        expect(error).toBe('invalid_api_version');
        expect(message).toBe(
          `${JSON.stringify(version)} is not a version of this API; the valid ones are 2026-04-16, 2026-04-28.`,
        );
      }
    },
  );
});
