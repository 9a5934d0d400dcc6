/** The names of filters, without what checks their values: see limits.ts. */
import type { EntryField } from '../group-by.js';
import type { EXCLUDING_FILTERS } from './parameters.js';

/** The parameter that leaves out values of a field. */
export const EXCLUDING_PARAMETER = {
  workspace: 'excludeWorkspace',
  resourceType: 'excludeResourceType',
  resourceName: 'excludeResourceName',
  resourceUuid: 'excludeResourceUuid',
  billingDimension: 'excludeBillingDimension',
} as const satisfies Record<EntryField, keyof typeof EXCLUDING_FILTERS>;
