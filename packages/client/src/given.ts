import type { Parts } from './parts.ts';

/** The parts of the client, for modules that are loaded later: filled before they are. */
export const given = [] as unknown as Parts;
