export {
  compareDistance,
  deriveRouteKey,
  dhtDistance,
  dhtPosition,
  encodeFindNode,
  encodeFrame,
} from './keyspace.ts';
