// The page's side of a worker: calls as promises, one after the other; cancel() ends what runs, with its thread.
export class Thread {
  #worker;
  #waiting = new Map();
  #next = 1;
  memory = 0;  // bytes that its compiler held when it last answered
  answered = () => {};

  constructor() { this.#start(); }
  #start() {
    this.#worker = new Worker("worker.mjs", { type: "module" });
    this.ready = new Promise((resolve, reject) => this.#waiting.set(0, { resolve, reject }));
    this.#worker.onmessage = ({ data: { id, value, fault, progress, memory } }) => {
      if (memory) (this.memory = memory), this.answered();
      const call = this.#waiting.get(id);
      if (!call) return;
      if (progress !== undefined) return call.progress?.(progress);
      this.#waiting.delete(id);
      fault ? call.reject(fault) : call.resolve(value);
    };
    this.#worker.onerror = (event) => this.#fail({ reason: event.message || "the worker could not be started" });
  }
  #fail(fault) {
    for (const { reject } of this.#waiting.values()) reject(fault);
    this.#waiting.clear();
  }
  async call(task, args, progress) {
    await this.ready;
    return new Promise((resolve, reject) => {
      const id = this.#next++;
      this.#waiting.set(id, { resolve, reject, progress });
      this.#worker.postMessage({ id, task, args });
    });
  }
  cancel() {
    this.#worker.terminate();
    this.#fail({ cancelled: true, reason: "cancelled" });
    this.#start();
    this.ready.catch(() => {});
  }
}
