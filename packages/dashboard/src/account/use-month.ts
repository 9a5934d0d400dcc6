/** Reads the cost of the current month and its forecast, and the account's alerts and budget. */
import { monthFigures } from '@meterline/catalog/plain';
import { ALL_ACCOUNTS } from '@meterline/client';
import { useMemo } from 'react';
import { budgetOf, useAlerts } from '../alerts/alerts.js';
import { useDailyCosts } from '../metrics/queries.js';
import type { Costs } from './use-costs.js';

export function useMonth({ account, filters, asOf, first }: Costs) {
  // These queries are less important than the breakdown, so they start after its response.
  const isReady = first !== undefined;
  const { data, failureReason } = useDailyCosts(account, filters, asOf, isReady);
  const month = useMemo(() => data && monthFigures(data, asOf), [data, asOf]);
  const alerts = useAlerts(account, account !== ALL_ACCOUNTS && isReady);
  return {
    /** The figures of the month: null while the response is pending, and undefined after a failure. */
    month: month ?? (failureReason ? undefined : null),
    alerts,
    /** Budget in USD per month. */
    budget: budgetOf(alerts, filters),
  };
}
