/** The worker of each tab: the client, with its store in IndexedDB. */
import '@posthouse/client/web/worker';
