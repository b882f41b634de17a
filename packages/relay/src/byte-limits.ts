import { limit } from './limit-kinds.ts';

/** The limits of bytes that clients send, and of those that wait for them (02 §18). */
export const byteLimits = {
  waitingRequestCharge: limit(
    4_096,
    'Bytes that a request counts which waits for the answer before it, and one under way on a WebSocket at least.',
  ),
  frameCharge: limit(1_024, 'Bytes that a WebSocket frame of a client counts at least (02 §18).'),
  chunkCharge: limit(
    256,
    'Bytes that each chunk and frame of an unfinished WebSocket message counts in addition: it costs memory.',
  ),
  recordCharge: limit(
    256,
    'Bytes that each record of TLS on a WebSocket counts at least, if no frame ends in it.',
  ),
  bodyChunkCharge: limit(
    32,
    'Bytes that each chunk of a body, or record of TLS with a part of it, counts at least; the first one is free.',
  ),
  unreadBytes: limit(
    131_072,
    'Bytes of the frames of one WebSocket that wait for their turns before no more of it is received.',
  ),
  receivedBytesPerAddress: limit(
    16_777_216,
    'Bytes of unanswered requests without a session, of one address; unfinished ones count as they arrive.',
  ),
  receivedBytesPerAccount: limit(
    16_777_216,
    'Bytes of unanswered requests of one account with a session.',
  ),
  receivedBytesOfStrangers: limit(
    67_108_864,
    'Bytes of unanswered requests without a session, in the process.',
  ),
  receivedBytes: limit(134_217_728, 'Bytes of unanswered requests in the process.'),
  waitingBytesPerAddress: limit(
    16_777_216,
    'Bytes that wait for peers without a session, of one address; TLS holds them once more.',
  ),
  waitingBytesPerAccount: limit(
    16_777_216,
    'Bytes that wait for the peers of one account with a session.',
  ),
  waitingBytesOfStrangers: limit(
    67_108_864,
    'Bytes that wait for peers without a session, in the process.',
  ),
  waitingBytes: limit(134_217_728, 'Bytes that wait for peers in the process.'),
  messageCharge: limit(
    2_048,
    'Bytes that each answer and notification which waits counts in addition: it costs memory.',
  ),
  addressBytes: limit(
    524_288,
    'Bytes of requests without a session read from one address in a second, sustained.',
  ),
  addressBytesBurst: limit(
    4_194_304,
    'Bytes of requests read from one address at once; its debt is never larger.',
  ),
  accountBytes: limit(
    2_097_152,
    'Bytes of requests with a session of one account read in a second, sustained.',
  ),
  accountBytesBurst: limit(
    16_777_216,
    'Bytes of such requests read at once; the debt is never larger.',
  ),
};
