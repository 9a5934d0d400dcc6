/** Watermarks: up to which hour and day the cells may be read. Both of a grain only rise. Source: DESIGN section 5. */
import type { EpochMs } from '@meterline/catalog';
import { z } from 'zod';
import type { Statement, Warehouse } from '../clickhouse/connection.js';
import { insertRows } from '../clickhouse/insert.js';
import { GRAINS, type Grain } from './grain.js';

export interface Seal {
  /** Cells below may be under computation already: who stores an event there must recompute its cell. */
  readonly sealingUntil: EpochMs;
  /** Cells below hold everything that is acknowledged: queries may read them instead of the truth. */
  readonly sealedUntil: EpochMs;
}
export type Seals = Readonly<Record<Grain, Seal>>;

export const SEALS_STATEMENT: Statement = {
  name: 'read_rollup_seals',
  query: `
SELECT
  grain,
  toUnixTimestamp(max(sealing_until)) AS sealing_until,
  toUnixTimestamp(max(sealed_until)) AS sealed_until
FROM rollup_seals
GROUP BY grain`,
  query_params: {},
};

const sealRow = z.object({ grain: z.enum(GRAINS), sealing_until: z.number(), sealed_until: z.number() });

/** A grain that was never sealed has both watermarks at 1970. */
export async function readSeals(warehouse: Warehouse): Promise<Seals> {
  const rows = await warehouse.read(SEALS_STATEMENT, sealRow);
  const seal = (grain: Grain): Seal => {
    const row = rows.find((candidate) => candidate.grain === grain);
    return { sealingUntil: (row?.sealing_until ?? 0) * 1000, sealedUntil: (row?.sealed_until ?? 0) * 1000 };
  };
  return { hourly: seal('hourly'), daily: seal('daily') };
}

/** Raises watermarks; one that is higher already stays. Durable when the promise resolves. */
export async function raiseSeal(warehouse: Warehouse, grain: Grain, seal: Partial<Seal>): Promise<void> {
  const seconds = (instant: EpochMs | undefined) => Math.floor((instant ?? 0) / 1000);
  const raised = { grain, sealing_until: seconds(seal.sealingUntil), sealed_until: seconds(seal.sealedUntil) };
  await insertRows(warehouse, 'rollup_seals', [raised], 'raise_rollup_seal');
}
