import type { Check } from '../check.ts';
import { groupCommonChecks } from './group-common.ts';
import { groupCreateChecks } from './group-create.ts';
import { groupGateChecks } from './group-gate.ts';

/** The checks of `group.host.v1`: what is a method's own, then what all have in common. */
export const groupChecks: readonly Check[] = [
  ...groupCreateChecks,
  ...Object.values(groupCommonChecks).flat(),
  ...Object.values(groupGateChecks).flat(),
];
