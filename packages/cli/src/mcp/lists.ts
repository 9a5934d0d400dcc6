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
    description: `Lists the accounts of the API key with their names and the role of the key. An admin can group and filter by workspace and \
list events; a member cannot; an operator reads all accounts; a provisioner manages the keys of all accounts and reads no usage. Use it to \
find the account ID for the other tools.`,
    inputSchema: only({
      search: z.string().optional().describe('Part of an ID or name; case-insensitive'),
      ...LIMIT,
      ...OFFSET,
    }),
    run: ({ context, flags, signal }, args) =>
      withApi(context, flags, async ({ client }) => {
        const search = args.search?.toLowerCase() ?? '';
        const matches = (text: string) => text.toLowerCase().includes(search);
        const accounts = (await client.accounts({ signal })).filter(({ id, name }) => matches(id) || matches(name));
        const { data, ...page } = await listPage(accounts, args);
        return { accounts: data, ...page };
      }),
  });
  addTool(server, host, {
    name: 'list_values',
    title: 'Values of filters and groups',
    description: `Lists values for the filters of query_usage: the resource types that an account used in a window, and all billing \
dimensions with their resource type, unit of usage (gbs: GB-seconds, count: events, hours) and current price (amount USD for per units). \
For names of resources and workspaces, use query_usage with groupBy.`,
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
    description: `Lists the alerts of an account, oldest first. An alert sends a webhook, a message or e-mails when the cost or usage in a \
calendar day or month (UTC), or the forecast of the month, reaches a threshold, in percent of its amount. fired and forecastFired contain \
the thresholds reached in the current period. URLs and addresses are omitted, because URLs may contain secrets.`,
    inputSchema: only({ ...ACCOUNT, ...LIMIT, ...OFFSET }),
    run: (call, { account: named, ...args }) =>
      forAccount(call, { ...(named !== undefined && { account: named }) }, async ({ client, account }) => {
        const { data, ...page } = await listPage(await client.alerts.list(account, { signal: call.signal }), args);
        const alerts = data.map(({ url: _secret, to: _addresses, ...alert }) => ({
          ...alert,
          unit: alertUnit(alert) ?? 'usd',
        }));
        return { account, alerts, ...page };
      }),
  });
}
