import type { OpenRejection } from '@meterline/warehouse';
import { mayHoldOthers } from './whole-jobs.js';

const MAX_GROUP = 500;
const MAX_GROUP_BYTES = 4 * 1024 * 1024;

/**
 * Refusals that are settled together: few enough that their payloads fit in memory. One whose payload others may refer
 * to begins a group, so that those, which come before it in a selection, are settled by then.
 */
export function settlementGroups(rejections: readonly OpenRejection[]): OpenRejection[][] {
  const groups: OpenRejection[][] = [];
  let group: OpenRejection[] = [];
  let bytes = 0;
  for (const rejection of rejections) {
    const isFull = group.length === MAX_GROUP || bytes + rejection.payloadBytes > MAX_GROUP_BYTES;
    if (group.length > 0 && (isFull || mayHoldOthers(rejection))) {
      groups.push(group);
      group = [];
      bytes = 0;
    }
    group.push(rejection);
    bytes += rejection.payloadBytes;
  }
  return group.length > 0 ? [...groups, group] : groups;
}
