import type { Check } from '../check.ts';
import { authChecks } from './auth.ts';
import { relayChecks } from './relay.ts';

/** Every check, in the order of the method index (02 §14). */
export const checks: readonly Check[] = [...relayChecks, ...authChecks];
