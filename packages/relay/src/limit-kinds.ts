import { Type } from '@posthouse/protocol';

/** A limit with its default, meaning and minimum. */
export const limit = (value: number, description: string, minimum = 1) =>
  Type.Integer({ default: value, description, minimum, maximum: Number.MAX_SAFE_INTEGER });
/** Seconds, at most about three thousand years, so that deadlines stay safe integers. */
export const period = (value: number, description: string, minimum = 1) =>
  Type.Integer({ default: value, description, minimum, maximum: 100_000_000_000 });
/** Milliseconds of a timer, at most what Node's timers allow. */
export const timer = (value: number, description: string) =>
  Type.Integer({ default: value, description, minimum: 1, maximum: 2_147_483_647 });
