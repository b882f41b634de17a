/** Entry `@posthouse/peer/raw`: parts of the wire, for peers that break its rules on purpose. */
export { encodeLines, Proposal } from './multistream.ts';
export { NoiseHandshake } from './noise/handshake.ts';
export { generateNoiseKeys } from './noise/keys.ts';
export { SecureChannel } from './secure-channel.ts';
export { SocketReader } from './socket-reader.ts';
export { encodeHeader, frameFlag, frameType } from './yamux/frame.ts';
