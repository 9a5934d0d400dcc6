/** Saved views: what is stored, who sees it, and which queries are rejected. Who may do what is in the authorisation matrix. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { MAX_VIEWS } from '@meterline/catalog';
import { MeterlineClient } from '@meterline/client';
import { bearer, errorOf, NOW, startApi, type TestApi } from '../harness/api.js';

let api: TestApi;
let admin: string;
let client: MeterlineClient;
let member: MeterlineClient;
beforeAll(async () => {
  api = await startApi({}, 'away');
  admin = await api.key('acme');
  client = new MeterlineClient({ baseUrl: api.url, credential: admin });
  member = new MeterlineClient({ baseUrl: api.url, credential: await api.key('acme', 'member', 'reader') });
});
afterAll(() => api.stop());

const put = (name: string, body: string) =>
  api.request(`/v0/accounts/acme/views/${encodeURIComponent(name)}`, {
    method: 'PUT',
    body,
    headers: { ...bearer(admin).headers, 'content-type': 'application/json' },
  });

it('a view is created, replaced, listed by name and deleted', async () => {
  const created = await client.views.save('acme', 'b / ü?', 'period=month&group=resource_name%2Cbilling_dimension');
  expect(created).toEqual({
    name: 'b / ü?',
    query: 'period=month&group=resource_name%2Cbilling_dimension',
    createdAt: NOW.toISOString(),
    updatedAt: NOW.toISOString(),
  });
  await client.views.save('acme', 'a', '');
  api.clock.now = new Date(NOW.getTime() + 1_000);
  const replaced = await client.views.save('acme', 'b / ü?', 'period=7d');
  expect(replaced).toEqual({ ...created, query: 'period=7d', updatedAt: api.clock.now.toISOString() });
  expect((await client.views.list('acme')).map(({ name }) => name)).toEqual(['a', 'b / ü?']);
  expect(await client.views.get('acme', 'b / ü?')).toEqual(replaced);
  for (const name of ['a', 'b / ü?']) await client.views.delete('acme', name);
  expect(await client.views.list('acme')).toEqual([]);
  await expect(client.views.delete('acme', 'a')).rejects.toMatchObject({ status: 404 });
});

it.each([
  ['group=workspace', false],
  ['group=resource_type,workspace', false],
  ['workspace=main', false],
  ['not-workspace=main', false],
  ['group=billing_dimension', true],
  ['', true],
])('a member of the account sees the view "%s": %s', async (query, isVisible) => {
  await client.views.save('acme', 'shown', query);
  expect((await member.views.list('acme')).map(({ name }) => name)).toEqual(isVisible ? ['shown'] : []);
  const read = member.views.get('acme', 'shown');
  if (isVisible) expect(await read).toMatchObject({ query });
  else await expect(read).rejects.toMatchObject({ status: 404 });
  await client.views.delete('acme', 'shown');
});

const NOT_OF_VIEWS = 'query has a parameter or value that views do not have, ';
it.each([
  ['period=9d', `${NOT_OF_VIEWS}"period=9d"`],
  ['period=7d&period=9d', `${NOT_OF_VIEWS}"period=9d"`],
  ['period=7d&account=acme', `${NOT_OF_VIEWS}"account=acme"`],
  ['accounts=all', `${NOT_OF_VIEWS}"accounts=all"`],
  ['resolution=undefined', `${NOT_OF_VIEWS}"resolution=undefined"`],
  ['cumulative=0', `${NOT_OF_VIEWS}"cumulative=0"`],
  ['from=2025-10-01T00:00:00Z', `${NOT_OF_VIEWS}"from=2025-10-01T00:00:00Z"`],
  ['from=2025-11-01T00:00:00Z&to=2025-10-01T00:00:00Z', `${NOT_OF_VIEWS}"from=2025-11-01T00:00:00Z"`],
  ['resolution=secondly', `${NOT_OF_VIEWS}"resolution=secondly"`],
  ['%00=1', `${NOT_OF_VIEWS}"\\u0000=1"`],
  [`x=${'y'.repeat(5_000)}`, `${NOT_OF_VIEWS}"x=${'y'.repeat(58)}"; copy`],
  ['group=tenant', `${NOT_OF_VIEWS}"group=tenant"`],
  ['group=tenant,workspace', 'query has the parameter group, which must list dimensions from workspace,'],
  ['group=account', 'query has the parameter group, which must list dimensions from workspace,'],
  ['type=Tractor', `${NOT_OF_VIEWS}"type=Tractor"`],
  ['type=agent&type=tractor', 'query has a filter by resourceType, which must be one of sandbox,'],
  ['not-dimension=tea_drinking_count', 'query has a filter by excludeBillingDimension, which must be one of'],
  [`uuid=${'u'.repeat(257)}`, 'query has a filter by resourceUuid, which must be 1 to 256 characters'],
  ['name=a%00b', 'query has a filter by resourceName, which must be 1 to 256 characters without control characters'],
  [Array.from({ length: 101 }, (_, n) => `name=${n}`).join('&'), 'query must filter by at most 100 values'],
])('the query "%s" is rejected, and the message says why', async (query, message) => {
  const response = await put('wrong', JSON.stringify({ query }));
  expect([response.status, errorOf(response).error]).toEqual([400, 'invalid_body']);
  expect(errorOf(response).message).toContain(message);
  expect(response.text.length).toBeLessThan(2_000);
});

it.each([
  ['?period=30d&type=agent&type=agent', 'type=agent'],
  ['group=workspace,resource_type&period=7d', 'period=7d&group=workspace%2Cresource_type'],
  [
    'to=2025-11-01T00:00:00.000Z&from=2025-10-01T00:00:00%2B00:00',
    'from=2025-10-01T00%3A00%3A00Z&to=2025-11-01T00%3A00%3A00Z',
  ],
  ['uuid=&not-workspace=main', 'not-workspace=main&uuid='],
])('the query "%s" is stored as the page writes it', async (query, stored) => {
  expect((await client.views.save('acme', 'same', query)).query).toBe(stored);
  await client.views.delete('acme', 'same');
});

it.each([
  ['query is missing', 'x', '{}', 'invalid_body'],
  ['query must be a string', 'x', '{"query":1}', 'invalid_body'],
  ['"name" is not a field', 'x', '{"query":"","name":"y"}', 'invalid_body'],
  ['query must have at most 8000 characters', 'x', JSON.stringify({ query: `q=${'x'.repeat(8_000)}` }), 'invalid_body'],
  ['name must be 1 to', 'x'.repeat(257), '{"query":""}', 'invalid_parameter'],
  ['name must be 1 to', '\n', '{"query":""}', 'invalid_parameter'],
])('the message says "%s"', async (message, name, body, error) => {
  const response = await put(name, body);
  expect([response.status, errorOf(response).error]).toEqual([400, error]);
  expect(errorOf(response).message).toContain(message);
});

it('an account has at most 100 views, and each of them can still be replaced', async () => {
  const key = await api.key('full');
  const full = new MeterlineClient({ baseUrl: api.url, credential: key });
  const names = Array.from({ length: MAX_VIEWS }, (_, index) => `view ${index}`);
  await Promise.all(names.map((name) => full.views.save('full', name, '')));
  await expect(full.views.save('full', 'one more', '')).rejects.toMatchObject({ status: 409, code: 'too_many_views' });
  await full.views.save('full', 'view 7', 'period=7d');
  expect(await full.views.list('full')).toHaveLength(MAX_VIEWS);
});
