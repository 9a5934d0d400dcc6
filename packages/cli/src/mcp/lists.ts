/** The tools `list_accounts`, `list_values` and `list_alerts`. */
import { alertUnit } from '@meterline/catalog';
import type { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { withApi } from '../connections/api.js';
import { withApiFlags } from '../flags.js';
import { type WindowFlags, windowOf, withWindow } from '../metrics/query.js';
import type { ApiFlags } from '../settings.js';
import { ACCOUNT, flagsOf, LIMIT, OFFSET, only, WINDOW } from './arguments.js';
import { addTool, type Call, forAccount, listPage } from './tool.js';

export function addLists(server: McpServer, host: Pick<Call, 'context' | 'flags'>): void {
  addTool(server, host, {
    name: 'list_accounts',
    title: 'Accounts',
    description: `The accounts of the API key, by name, and its role there: an admin may group and filter by workspace and see single events, \
a member may not, an operator reads every account; a provisioner manages the keys of every account and reads no usage. Finds the account ID that the other tools take.`,
    inputSchema: only({
      search: z.string().optional().describe('Part of an ID or name, in upper or lower case'),
      ...LIMIT,
      ...OFFSET,
    }),
    run: ({ context, flags, signal }, args) =>
      withApi(context, flags, async ({ client }) => {
        const search = args.search?.toLowerCase() ?? '';
        const isFound = (name: string) => name.toLowerCase().includes(search);
        const accounts = (await client.accounts({ signal })).filter(({ id, name }) => isFound(id) || isFound(name));
        const { data, ...page } = await listPage(accounts, args);
        return { accounts: data, ...page };
      }),
  });
  addTool(server, host, {
    name: 'list_values',
    title: 'Values of filters and groups',
    description: `Values for the filters of query_usage: the resource types that an account used in a window, and every billing dimension \
with its resource type, the unit of its usage (gbs: GB-seconds, count: events, hours) and its price now, amount USD for per units. For \
names of resources and workspaces use query_usage with groupBy.`,
    inputSchema: only({ ...ACCOUNT, ...WINDOW }),
    run: async (call, args) => {
      const { now, signal } = call;
      const flags = flagsOf<WindowFlags & ApiFlags>((command) => withWindow(withApiFlags(command)), args, now);
      const { sent } = windowOf(flags, now);
      return forAccount(call, flags, async ({ client, account }) => ({
        account,
        ...sent,
        resourceTypes: await client.resourceTypes(account, sent, { signal }),
        billingDimensions: await client.billingDimensions(account, { signal }),
      }));
    },
  });
  addTool(server, host, {
    name: 'list_alerts',
    title: 'Alerts',
    description: `The alerts of an account, the oldest first: each sends a webhook when the cost or usage of a calendar day or month (UTC) \
reaches a threshold, in percent of its amount; fired has what was reached in the current period. The addresses of webhooks are left \
out, because they may hold secrets.`,
    inputSchema: only({ ...ACCOUNT, ...LIMIT, ...OFFSET }),
    run: (call, { account: named, ...args }) =>
      forAccount(call, { ...(named !== undefined && { account: named }) }, async ({ client, account }) => {
        const { data, ...page } = await listPage(await client.alerts.list(account, { signal: call.signal }), args);
        const alerts = data.map(({ url: _secret, ...alert }) => ({ ...alert, unit: alertUnit(alert) ?? 'usd' }));
        return { account, alerts, ...page };
      }),
  });
}
