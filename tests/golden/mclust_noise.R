# Numbers of R mclust with a noise component, from given responsibilities. To regenerate, from the repository's root:
#
#   python tests/golden/make_inputs.py build/golden
#   Rscript tests/golden/mclust_noise.R build/golden tests/golden/mclust_noise.json
#
# Needs the R packages mclust and jsonlite.

suppressPackageStartupMessages(library(mclust))
library(jsonlite)

args <- commandArgs(trailingOnly = TRUE)
models <- c("EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EEV", "VEV", "EVV", "VVV")
control <- emControl(tol = c(1e-13, 1e-14), itmax = c(20000, 10000))
read_matrix <- function(name) unname(as.matrix(read.csv(file.path(args[1], paste0(name, ".csv")), header = FALSE)))

x <- read_matrix("noisy")
z <- read_matrix("noisy_z")  # the last column is noise
volume <- prod(apply(x, 2, max) - apply(x, 2, min))  # of the bounding box

fit <- function(model) {
  end <- me(modelName = model, data = x, z = z, prior = NULL, control = control, Vinv = 1 / volume)
  again <- do.call("estep", c(list(data = x), end[c("modelName", "parameters")]))
  list(loglik = again$loglik, pro = end$parameters$pro, mean = t(end$parameters$mean))
}

out <- list(
  R = R.version.string,
  mclust = as.character(packageVersion("mclust")),
  n_rows = nrow(x),
  column_sums = colSums(x),
  volume = volume,
  models = sapply(models, fit, simplify = FALSE)
)
writeLines(toJSON(out, digits = I(16), auto_unbox = TRUE, na = "null", null = "null"), args[2])
