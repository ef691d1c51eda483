// Common to all checks: steps with a timeout, and a record of notifications that can be awaited.
const DEADLINE = 100_000; // milliseconds for all steps together

let step = 'start';
setTimeout(() => {
  console.error(`not done after ${DEADLINE} ms; last step: ${step}`);
  process.exit(1);
}, DEADLINE).unref();

export function begin(name) {
  step = name;
  console.log(name);
}

// The notifications received so far, in order.
export class Heard {
  all = [];
  #waiting = [];

  add(method, params) {
    this.all.push({ method, params });
    this.#waiting = this.#waiting.filter((one) => !one());
  }
  of(method) {
    return this.all.filter((one) => one.method === method).map((one) => one.params);
  }
  // Resolves when `count` notifications of this method have been received.
  until(method, count) {
    return new Promise((resolve) => {
      const look = () => this.of(method).length >= count && (resolve(this.of(method)), true);
      if (!look()) this.#waiting.push(look);
    });
  }
}
