/** What a NATS server says of itself. */
export interface NatsAnswer {
  readonly version: string;
  /** Milliseconds that an answer took. */
  readonly roundTrip: number;
}

/**
 * Connects with the NATS server of `bus.nats` as a relay does, and waits for an answer.
 *
 * @throws Error of the connection, or the signal's reason
 */
export async function askNats(url: string, signal: AbortSignal): Promise<NatsAnswer> {
  // Loaded here: a relay of one process never needs it.
  const [{ connect }, { connectionOptions }] = await Promise.all([
    import('@nats-io/transport-node'),
    import('./nats-bus.ts'),
  ]);
  const connection = await connect(connectionOptions(url));
  const close = () => void connection.close();
  signal.addEventListener('abort', close, { once: true });
  try {
    const roundTrip = await connection.rtt();
    signal.throwIfAborted();
    return { version: connection.info?.version ?? '', roundTrip };
  } finally {
    signal.removeEventListener('abort', close);
    await connection.close();
  }
}
