/** Reads and changes the alerts of an account, and formats them for display. */
import { alertAmountText, compareDecimals, type DecimalText, decimalText } from '@meterline/catalog/plain';
import type { AlertResponse, FilterQuery, MeterlineClient, NewAlertBody } from '@meterline/client';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { localized } from '../format/locale.js';
import { filterTexts } from '../format/texts.js';
import { useSession } from '../shell/session.js';

const POLL_MS = 5_000;

/** Reads the alerts, at intervals if `isPolling`. Returns undefined until they are loaded, and if they cannot be loaded. */
export function useAlerts(account: string, enabled: boolean, isPolling = false): readonly AlertResponse[] | undefined {
  const { client } = useSession();
  return useQuery({
    queryKey: ['alerts', account],
    queryFn: ({ signal }) => client.alerts.list(account, { signal }),
    enabled,
    ...(isPolling && { staleTime: 0, refetchInterval: POLL_MS }),
  }).data;
}

/** Changes alerts and then reads them again. Never retries a change, because a retry could create a second alert. */
export function useAlertAction<Input, Output>(
  account: string,
  act: (client: MeterlineClient, input: Input) => Promise<Output>,
) {
  const { client } = useSession();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (input: Input) => act(client, input),
    retry: false,
    // Do not wait for the list, because the secret of a new alert must be visible even if the list cannot be loaded.
    onSettled: () => void queries.invalidateQueries({ queryKey: ['alerts', account] }),
  });
}

/** Returns the monthly budget in USD: the smallest amount of the alerts on monthly cost that have exactly the filters of the view. */
export function budgetOf(alerts: readonly AlertResponse[] = [], filters: FilterQuery): DecimalText | undefined {
  const filtersOfView = JSON.stringify(alertFilters(filters));
  const amounts = alerts
    .filter(({ period, measure }) => period === 'month' && measure === 'cost')
    .filter((alert) => JSON.stringify(alertFilters(alert.filters)) === filtersOfView)
    .map(({ amount }) => decimalText(amount));
  return amounts.sort(compareDecimals)[0];
}

/** Converts the filters of a query to filters of an alert. Returns undefined for filters that an alert cannot have, such as exclusions. */
export function alertFilters(filters: FilterQuery): NewAlertBody['filters'] | undefined {
  const { workspace, resourceType, resourceName, resourceUuid, billingDimension, ...others } = filters;
  if (Object.values(others).some((value) => value !== undefined)) return undefined;
  const listed = <Value extends string>(values: Value | readonly Value[] | undefined) =>
    values && [values].flat().sort();
  return {
    workspace: listed(workspace),
    resourceType: listed(resourceType),
    resourceName: listed(resourceName),
    resourceUuid: listed(resourceUuid),
    billingDimension: listed(billingDimension),
  };
}

const GROUPED = /^[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?$/;

/** Extracts the decimal of `$1,000.50`. Keeps commas that may be decimal separators (`0,125`), so that the API rejects the input. */
export function amountIn(text: string): string {
  const amount = text.replace(/[$\s]/g, '');
  return GROUPED.test(amount) ? amount.replaceAll(',', '') : amount;
}

/** Formats an amount with every digit, such as `$100.50` or `50,000 events`. */
export function measuredText(amount: string, alert: AlertResponse): string {
  return localized(alertAmountText(amount, alert));
}

/** Describes what an alert watches, such as `Cost · Resource type: Agent`. */
export function subjectText(measure: AlertResponse['measure'], filters: FilterQuery): string {
  const texts = filterTexts(filters);
  return [measure === 'cost' ? 'Cost' : 'Usage', ...(texts.length > 0 ? texts : ['All usage of the account'])].join(
    ' · ',
  );
}
