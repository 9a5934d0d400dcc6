/** The account's alerts, and what the page says of them. */
import { alertAmountText, compareDecimals, type DecimalText, decimalText } from '@meterline/catalog/plain';
import type { AlertResponse, FilterQuery, MeterlineClient, NewAlertBody } from '@meterline/client';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { filterTexts, localized } from '../breakdown/texts.js';
import { useSession } from '../shell/session.js';

const WATCH_MS = 5_000;

/**
 * Undefined where there are none to see: not read yet, or the service is one without alerts.
 * @param isWatched they are read anew, and again and again
 */
export function useAlerts(account: string, enabled: boolean, isWatched = false): readonly AlertResponse[] | undefined {
  const { client } = useSession();
  return useQuery({
    queryKey: ['alerts', account],
    queryFn: ({ signal }) => client.alerts.list(account, { signal }),
    enabled,
    ...(isWatched && { staleTime: 0, refetchInterval: WATCH_MS }),
  }).data;
}

/** Something that an admin does to alerts; afterwards they are read again. It is sent once: a second alert would be another. */
export function useAlertAction<Input, Output>(
  account: string,
  act: (client: MeterlineClient, input: Input) => Promise<Output>,
) {
  const { client } = useSession();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (input: Input) => act(client, input),
    retry: false,
    // The list is not waited for: a new alert has a secret to show, however long that takes.
    onSettled: () => void queries.invalidateQueries({ queryKey: ['alerts', account] }),
  });
}

/** What is drawn as a budget, in USD: the amount of the alert on what a month of just this costs; of several, the smallest. */
export function budgetOf(alerts: readonly AlertResponse[] = [], filters: FilterQuery): DecimalText | undefined {
  const shown = JSON.stringify(alertFilters(filters));
  const amounts = alerts
    .filter(({ period, measure }) => period === 'month' && measure === 'cost')
    .filter((alert) => JSON.stringify(alertFilters(alert.filters)) === shown)
    .map(({ amount }) => decimalText(amount));
  return amounts.sort(compareDecimals)[0];
}

/** As an alert has them; undefined for others, such as those that leave values out. */
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

/** The decimal in `$1,000.50`. Where any comma may be a decimal one (`0,125`, `1000,500`), all stay, and the API rejects the amount. */
export function amountIn(text: string): string {
  const amount = text.replace(/[$\s]/g, '');
  return GROUPED.test(amount) ? amount.replaceAll(',', '') : amount;
}

/** Every digit: `$100.50`, `50,000 events`. */
export function measuredText(amount: string, alert: AlertResponse): string {
  return localized(alertAmountText(amount, alert));
}

/** `Cost · Resource type: Agent`. */
export function subjectText(measure: AlertResponse['measure'], filters: FilterQuery): string {
  const texts = filterTexts(filters);
  return [measure === 'cost' ? 'Cost' : 'Usage', ...(texts.length > 0 ? texts : ['All that the account uses'])].join(
    ' · ',
  );
}
