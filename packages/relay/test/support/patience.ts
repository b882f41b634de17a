/** How long tests wait for what must come: long enough for a busy machine, since only a failure waits. */
export const patience = { timeout: 30_000 };
