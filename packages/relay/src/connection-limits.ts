import { limit, timer } from './limit-kinds.ts';

/** The limits of open connections, and of the TLS handshakes that they begin with (02 §18). */
export const connectionLimits = {
  connections: limit(20_000, 'Open connections in all.'),
  strangerConnections: limit(
    16_000,
    'Open connections without a session; the others are a reserve for those with one.',
  ),
  connectionsPerAddress: limit(2_000, 'Open connections of one address.'),
  handshakeRate: limit(
    400,
    'TLS handshakes begun in a second, sustained; each takes about 0.6 ms.',
  ),
  handshakeBurst: limit(
    40,
    'TLS handshakes begun without a pause, one in each turn of the event loop.',
  ),
  addressHandshakeRate: limit(50, 'TLS handshakes of one address begun in a second, sustained.'),
  addressHandshakeBurst: limit(
    500,
    'TLS handshakes of one address begun at once; the others wait, and the newest begins first.',
  ),
  addressHandshakesWaiting: limit(
    50,
    'Connections of one address that wait for its rate; one more ends the oldest.',
  ),
  handshakeTimeout: timer(10_000, 'Milliseconds for a TLS handshake that has begun.'),
  handshakesUnfinished: limit(
    2_000,
    'TLS handshakes begun and not over; one more ends the oldest of the address with most.',
  ),
  addressHandshakesUnfinished: limit(
    500,
    'TLS handshakes of one address begun and not over; one more ends the oldest.',
  ),
  clientHelloBytes: limit(16_384, "Bytes of the first message of a client's TLS handshake.", 4_096),
};
